import { asText, fieldsOf, MessageWriter } from './protobuf.ts';

/** Full method names of the Flight service. */
export const FLIGHT_METHOD = {
  handshake: '/arrow.flight.protocol.FlightService/Handshake',
  listFlights: '/arrow.flight.protocol.FlightService/ListFlights',
  getFlightInfo: '/arrow.flight.protocol.FlightService/GetFlightInfo',
  getSchema: '/arrow.flight.protocol.FlightService/GetSchema',
  doGet: '/arrow.flight.protocol.FlightService/DoGet',
  doPut: '/arrow.flight.protocol.FlightService/DoPut',
  doAction: '/arrow.flight.protocol.FlightService/DoAction',
  listActions: '/arrow.flight.protocol.FlightService/ListActions',
} as const;

const CMD = 2;

export interface FlightAction {
  type: string;
  body: Uint8Array;
}

export interface FlightActionType {
  type: string;
  description: string;
}

/** `cmd` holds the JSON of INFO-1; a PATH descriptor's first element is read as if it were `cmd`. */
export interface FlightDescriptor {
  cmd: Uint8Array;
}

export interface FlightEndpoint {
  ticket: Uint8Array;
}

export interface FlightInfo {
  /** The schema as an encapsulated IPC message. */
  schema: Uint8Array;
  descriptor: FlightDescriptor;
  endpoints: FlightEndpoint[];
  /** Absent when unknown. */
  totalRecords?: bigint;
  ordered: boolean;
  appMetadata: Uint8Array;
}

/** A message whose one field of interest is a run of bytes. */
const bytesMessage = (field: number) => ({
  encode: (value: Uint8Array): Buffer => new MessageWriter().bytes(field, value).finish(),
  decode: (message: Uint8Array): Uint8Array => lastBytes(message, field),
});

export const handshakeMessage = bytesMessage(2);
export const resultMessage = bytesMessage(1);
export const ticketMessage = bytesMessage(1);
export const schemaResultMessage = bytesMessage(1);
export const putResultMessage = bytesMessage(1);
export const cancelFlightInfoRequest = bytesMessage(1);

/** Status of CancelFlightInfo: 1 cancelled, 2 cancelling, 3 not cancellable. */
export const cancelFlightInfoResult = {
  encode: (status: 1 | 2 | 3): Buffer => new MessageWriter().uint(1, status).finish(),
  decode: (message: Uint8Array): number => {
    for (const field of fieldsOf(message)) if (field.number === 1) return Number(field.varint);
    return 0;
  },
};

/** Decodes to an object, since grpc-js takes a request that is falsy for one that never came. */
export const emptyMessage = { encode: (): Buffer => Buffer.alloc(0), decode: (): object => ({}) };

export const actionMessage = {
  encode: ({ type, body }: FlightAction): Buffer => new MessageWriter().string(1, type).bytes(2, body).finish(),
  decode: (message: Uint8Array): FlightAction => {
    const action: FlightAction = { type: '', body: new Uint8Array(0) };
    for (const { number, bytes } of fieldsOf(message)) {
      if (number === 1) action.type = asText(bytes);
      else if (number === 2) action.body = bytes;
    }
    return action;
  },
};

export const actionTypeMessage = {
  encode: ({ type, description }: FlightActionType): Buffer =>
    new MessageWriter().string(1, type).string(2, description).finish(),
  decode: (message: Uint8Array): FlightActionType => {
    const action: FlightActionType = { type: '', description: '' };
    for (const { number, bytes } of fieldsOf(message)) {
      if (number === 1) action.type = asText(bytes);
      else if (number === 2) action.description = asText(bytes);
    }
    return action;
  },
};

export const descriptorMessage = {
  encode: ({ cmd }: FlightDescriptor): Buffer => new MessageWriter().uint(1, CMD).bytes(2, cmd).finish(),
  decode: (message: Uint8Array): FlightDescriptor => {
    let cmd: Uint8Array | undefined;
    for (const { number, bytes } of fieldsOf(message)) {
      if (number === 2 || (number === 3 && cmd === undefined)) cmd = bytes;
    }
    return { cmd: cmd ?? new Uint8Array(0) };
  },
};

const endpointMessage = {
  encode: ({ ticket }: FlightEndpoint): Buffer => new MessageWriter().message(1, ticketMessage.encode(ticket)).finish(),
  decode: (message: Uint8Array): FlightEndpoint => ({ ticket: ticketMessage.decode(lastBytes(message, 1)) }),
};

export const flightInfoMessage = {
  encode: (info: FlightInfo): Buffer => {
    const writer = new MessageWriter().bytes(1, info.schema).message(2, descriptorMessage.encode(info.descriptor));
    for (const endpoint of info.endpoints) writer.message(3, endpointMessage.encode(endpoint));
    return writer
      .uint(4, info.totalRecords ?? -1n)
      .uint(5, -1n)
      .uint(6, info.ordered ? 1 : 0)
      .bytes(7, info.appMetadata)
      .finish();
  },
  decode: (message: Uint8Array): FlightInfo => {
    const info: FlightInfo = {
      schema: new Uint8Array(0),
      descriptor: { cmd: new Uint8Array(0) },
      endpoints: [],
      ordered: false,
      appMetadata: new Uint8Array(0),
    };
    for (const { number, varint, bytes } of fieldsOf(message)) {
      if (number === 1) info.schema = bytes;
      else if (number === 2) info.descriptor = descriptorMessage.decode(bytes);
      else if (number === 3) info.endpoints.push(endpointMessage.decode(bytes));
      else if (number === 4 && BigInt.asIntN(64, varint) >= 0n) info.totalRecords = varint;
      else if (number === 6) info.ordered = varint !== 0n;
      else if (number === 7) info.appMetadata = bytes;
    }
    return info;
  },
};

function lastBytes(message: Uint8Array, wanted: number): Uint8Array {
  let found: Uint8Array = new Uint8Array(0);
  for (const { number, bytes } of fieldsOf(message)) if (number === wanted) found = bytes;
  return found;
}
