import { timingSafeEqual } from 'node:crypto';
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
} from '@grpc/grpc-js';
import {
  ACTION,
  type ActionName,
  cancelFlightInfoRequest,
  cancelFlightInfoResult,
  encodeSchema,
  FAULT_POINTS,
  type FaultPoint,
  type FlightAction,
  type FlightActionType,
  type FlightData,
  type FlightDescriptor,
  type FlightInfo,
  flightInfoMessage,
  LIMIT,
  type PiecewiseMessage,
  type ReadDescriptor,
  UrutauError,
} from '@urutau/contract';
import type { Read, SinkDriver, SourceDriver } from '../define.ts';
import { faultPointOfAnswer } from '../fault-point.ts';
import type { ActionTable } from './actions.ts';
import { flightService } from './service.ts';
import { NotServed, toServiceError } from './service-error.ts';
import { streamIn } from './stream-in.ts';
import { schemaOf, streamOut } from './stream-out.ts';
import { Tickets } from './tickets.ts';
import { openTransport } from './transport.ts';
import type { WriteStreams } from './write-streams.ts';

export interface FlightServer {
  /** Address as grpc-js takes it: `unix:/path` or `127.0.0.1:0`. Resolves with the port (TCP) once it accepts. */
  listen(address: string): Promise<number>;
  /** EXIT-3: refuses new calls. Resolves when those in flight have ended, which endless streams never do. */
  close(): Promise<void>;
}

type Role = { role: 'source'; driver: SourceDriver } | { role: 'sink'; driver: SinkDriver; streams: WriteStreams };

/** Serves a driver over Flight: bearer on every call, actions, reads and writes. */
export function createFlightServer(served: Role, actions: ActionTable, token: string): FlightServer {
  const server = new Server({
    'grpc.max_receive_message_length': LIMIT.messageBytesMax,
    'grpc.max_send_message_length': LIMIT.messageBytesMax,
    'grpc.keepalive_permit_without_calls': 1,
  });
  const bearer = Buffer.from(`Bearer ${token}`);
  const payload = Buffer.from(token);
  const tickets = new Tickets<{ read: Read; mode: ReadDescriptor['mode'] }>();
  const answerPoints = answerPointsOf(served.role);
  const { breakConnections } = openTransport(server);

  const handshake: handleBidiStreamingCall<Uint8Array, Uint8Array> = (call) => {
    call.once('data', (sent: Uint8Array) => {
      if (!same(sent, payload)) {
        fail(call, unauthenticated());
        return;
      }
      call.write(new Uint8Array(0));
      call.end();
    });
    call.once('end', () => call.end());
    call.on('error', ignore);
  };

  const getFlightInfo: handleUnaryCall<FlightDescriptor, FlightInfo> = (call, callback) => {
    answer(call.metadata, async () => {
      const descriptor = readDescriptor(call.request);
      const read = await beginRead(served, descriptor);
      const ticket = tickets.issue({ read, mode: descriptor.mode }, () => read.release?.());
      await faultPointOfAnswer('source.flight-info.answer', breakConnections);
      return {
        schema: encodeSchema(schemaOf(read.shape, descriptor.mode)),
        descriptor: call.request,
        endpoints: [{ ticket }],
        ...(read.totalRecords === undefined ? {} : { totalRecords: BigInt(read.totalRecords) }),
        ordered: true,
        appMetadata: Buffer.from(JSON.stringify(read.metadata)),
      };
    }).then(
      (info) => callback(null, info),
      (error) => callback(toServiceError(error)),
    );
  };

  const getSchema: handleUnaryCall<FlightDescriptor, Uint8Array> = (call, callback) => {
    answer(call.metadata, async () => {
      const descriptor = readDescriptor(call.request);
      const read = await beginRead(served, descriptor);
      read.release?.();
      return encodeSchema(schemaOf(read.shape, descriptor.mode));
    }).then(
      (schema) => callback(null, schema),
      (error) => callback(toServiceError(error)),
    );
  };

  const doGet: handleServerStreamingCall<Uint8Array, PiecewiseMessage> = (call) => {
    call.on('error', ignore);
    answer(call.metadata, () => {
      const { read, mode } = tickets.use(call.request);
      return streamOut(call, read, mode);
    }).then(
      () => call.end(),
      (error) => fail(call, error),
    );
  };

  const doPut: handleBidiStreamingCall<FlightData, Uint8Array> = (call) => {
    call.on('error', ignore);
    answer(call.metadata, () => {
      if (served.role !== 'sink') throw notServed('DoPut');
      return streamIn(call, served.driver, served.streams);
    }).then(
      () => call.end(),
      (error) => fail(call, error),
    );
  };

  const doAction: handleServerStreamingCall<FlightAction, Uint8Array> = (call) => {
    call.on('error', ignore);
    answer(call.metadata, () => runAction(call.request)).then(
      (body) => {
        call.write(body);
        call.end();
      },
      (error) => fail(call, error),
    );
  };

  const listActions: handleServerStreamingCall<object, FlightActionType> = (call) => {
    call.on('error', ignore);
    answer(call.metadata, async () => [
      ...actions.keys(),
      ...(served.role === 'source' ? [ACTION.cancelFlightInfo] : []),
    ]).then(
      (names) => {
        for (const type of names) call.write({ type, description: '' });
        call.end();
      },
      (error) => fail(call, error),
    );
  };

  async function runAction({ type, body }: FlightAction): Promise<Uint8Array> {
    if (type === ACTION.cancelFlightInfo && served.role === 'source') {
      const info = flightInfoMessage.decode(cancelFlightInfoRequest.decode(body));
      const known = info.endpoints.some(({ ticket }) => tickets.release(ticket));
      return cancelFlightInfoResult.encode(known ? 1 : 3);
    }
    const handler = actions.get(type as ActionName);
    if (handler === undefined) throw notServed(`the action ${type}`);
    const result = await handler(parseBody(type, body));
    const point = answerPoints.get(type);
    if (point) await faultPointOfAnswer(point, breakConnections);
    if (typeof result === 'string') return Buffer.from(result);
    return result === undefined ? new Uint8Array(0) : Buffer.from(JSON.stringify(result));
  }

  /** AUTH-2: the bearer is checked before anything else, on every call. */
  async function answer<T>(metadata: Metadata, run: () => Promise<T> | T): Promise<T> {
    const sent = metadata.get('authorization')[0];
    if (typeof sent !== 'string' || !same(Buffer.from(sent), bearer)) throw unauthenticated();
    return run();
  }

  server.addService(flightService, {
    Handshake: handshake,
    GetFlightInfo: getFlightInfo,
    GetSchema: getSchema,
    DoGet: doGet,
    DoPut: doPut,
    DoAction: doAction,
    ListActions: listActions,
  });

  return {
    listen: (address) => {
      return new Promise((resolve, reject) => {
        server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
          if (error) reject(error);
          else resolve(port);
        });
      });
    },
    close: () => new Promise((resolve) => server.tryShutdown(() => resolve())),
  };
}

async function beginRead(served: Role, descriptor: ReadDescriptor): Promise<Read> {
  if (served.role !== 'source') throw notServed('GetFlightInfo');
  return served.driver.read(descriptor);
}

/** The fault points before the answers of this role, by the name of the action. */
function answerPointsOf(role: 'source' | 'sink'): ReadonlyMap<string, FaultPoint> {
  return new Map(
    Object.entries(FAULT_POINTS).flatMap(([name, { action }]): [string, FaultPoint][] =>
      action !== null && name.startsWith(`${role}.`) ? [[action, name as FaultPoint]] : [],
    ),
  );
}

function readDescriptor({ cmd }: FlightDescriptor): ReadDescriptor {
  let descriptor: ReadDescriptor;
  try {
    descriptor = JSON.parse(Buffer.from(cmd).toString());
  } catch (cause) {
    throw new UrutauError('config-invalid', 'the descriptor is not JSON (INFO-1)', { cause });
  }
  const { table, mode } = descriptor;
  if (typeof table !== 'string' || table === '' || Buffer.byteLength(table) > LIMIT.tableNameBytesMax) {
    throw new UrutauError('config-invalid', `expected a table name of 1 to ${LIMIT.tableNameBytesMax} bytes (INFO-2)`);
  }
  if (mode !== 'snapshot' && mode !== 'changes' && mode !== 'chunk') {
    throw new UrutauError('config-invalid', `expected mode snapshot, changes or chunk; came ${JSON.stringify(mode)}`, {
      table,
    });
  }
  return descriptor;
}

function parseBody(action: string, body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch (cause) {
    throw new UrutauError('config-invalid', `the request of ${action} is not JSON`, { cause });
  }
}

function same(sent: Uint8Array, expected: Uint8Array): boolean {
  return sent.length === expected.length && timingSafeEqual(sent, expected);
}

function unauthenticated(): UrutauError {
  return new UrutauError('auth-failed', 'this call carries no bearer token, or a wrong one (AUTH-2)', {
    remedy: 'Only the host that started this driver may call it.',
  });
}

function notServed(what: string): NotServed {
  return new NotServed('protocol-violation', `${what} is not served by this driver (RPC-1)`);
}

/** grpc-js ends a call with the error's status when it is emitted; after `destroy` it would send no status at all. */
function fail(call: NodeJS.EventEmitter, error: unknown): void {
  call.emit('error', toServiceError(error));
}

/** A call that the peer broke off reports it here; whoever reads or writes the call is told as well. */
function ignore(): void {}
