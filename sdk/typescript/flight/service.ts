import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import {
  actionMessage,
  actionTypeMessage,
  decodeFlightData,
  descriptorMessage,
  emptyMessage,
  FLIGHT_METHOD,
  type FlightAction,
  type FlightActionType,
  type FlightData,
  type FlightDescriptor,
  type FlightInfo,
  flightInfoMessage,
  handshakeMessage,
  type PiecewiseMessage,
  putResultMessage,
  resultMessage,
  schemaResultMessage,
  ticketMessage,
} from '@urutau/contract';

interface Codec<T> {
  encode(value: T): Buffer;
  decode(bytes: Uint8Array): T;
}

/** grpc-js wants a Buffer; of what it gets it uses `length` and `copy` alone, which PiecewiseMessage has. */
const outgoingData: Codec<PiecewiseMessage> = {
  encode: (message) => message as unknown as Buffer,
  decode: () => {
    throw new Error('a server never reads its own data');
  },
};
const incomingData: Codec<FlightData> = {
  encode: () => {
    throw new Error('a server never writes to DoPut');
  },
  decode: decodeFlightData,
};

/** The methods of the Flight service that a driver serves, with this project's codecs. */
export const flightService = {
  Handshake: method(FLIGHT_METHOD.handshake, handshakeMessage, handshakeMessage, { up: true, down: true }),
  GetFlightInfo: method<FlightDescriptor, FlightInfo>(
    FLIGHT_METHOD.getFlightInfo,
    descriptorMessage,
    flightInfoMessage,
  ),
  GetSchema: method(FLIGHT_METHOD.getSchema, descriptorMessage, schemaResultMessage),
  DoGet: method(FLIGHT_METHOD.doGet, ticketMessage, outgoingData, { down: true }),
  DoPut: method(FLIGHT_METHOD.doPut, incomingData, putResultMessage, { up: true, down: true }),
  DoAction: method<FlightAction, Uint8Array>(FLIGHT_METHOD.doAction, actionMessage, resultMessage, { down: true }),
  ListActions: method<object, FlightActionType>(FLIGHT_METHOD.listActions, emptyMessage, actionTypeMessage, {
    down: true,
  }),
} satisfies ServiceDefinition;

function method<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
  { up = false, down = false } = {},
): MethodDefinition<Request, Response> {
  return {
    path,
    requestStream: up,
    responseStream: down,
    requestSerialize: request.encode,
    requestDeserialize: request.decode,
    responseSerialize: response.encode,
    responseDeserialize: response.decode,
  };
}
