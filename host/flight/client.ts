import { access } from 'node:fs/promises';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import {
  ACTION,
  actionMessage,
  actionTypeMessage,
  descriptorMessage,
  emptyMessage,
  encodeFlightData,
  encodeSchemaHeader,
  FLIGHT_METHOD,
  type FlightActionType,
  type FlightInfo,
  flightInfoMessage,
  handshakeMessage,
  LIMIT,
  type ReadDescriptor,
  resultMessage,
  ticketMessage,
  UrutauError,
  type WriteDescriptor,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { type Mask, NO_MASK } from '../supervisor/mask.ts';
import { DataConnection } from './data-connection.ts';
import { ReadStream } from './read-stream.ts';
import { fromServiceError, maskedCause } from './service-error.ts';
import { WriteStream } from './write-stream.ts';

const STREAMS_PER_CONNECTION = 50;
const HANDSHAKE_MS = 10_000;
/** A stranger is refused at once, or the driver is busy and will refuse it too. */
const STRANGER_MS = 2_000;

const empty = new Uint8Array(0);

export interface ActionOptions {
  /** Cancels the call; its reason is thrown. */
  signal?: AbortSignal | undefined;
  /** None by default: a commit takes as long as it takes, and the heartbeat decides who is dead. */
  timeoutMs?: number;
}

/**
 * One driver process seen over Flight. Heartbeats have a connection of their own, and so have all other actions, so that
 * neither queues behind rows; data streams share further connections, at most `STREAMS_PER_CONNECTION` each.
 */
export class FlightClient {
  readonly role: 'source' | 'sink';
  /** For texts in answers that a person reads; errors have passed it. */
  readonly mask: Mask;
  readonly #endpoint: string;
  readonly #metadata = new Metadata();
  /** Heartbeat and shutdown alone: they wait behind nothing. */
  readonly #life: Client;
  readonly #control: Client;
  readonly #token: string;
  readonly #data: DataConnection[] = [];

  private constructor(role: 'source' | 'sink', endpoint: string, token: string, mask: Mask) {
    this.role = role;
    this.mask = mask;
    this.#endpoint = endpoint;
    this.#token = token;
    this.#metadata.set('authorization', `Bearer ${token}`);
    this.#life = connection(endpoint);
    this.#control = connection(endpoint);
  }

  /** Connects and shakes hands (AUTH-1). Refuses a driver that would do so with anybody. */
  static async connect(
    role: 'source' | 'sink',
    endpoint: string,
    token: string,
    mask: Mask = NO_MASK,
  ): Promise<FlightClient> {
    const client = new FlightClient(role, endpoint, token, mask);
    try {
      await handshake(client.#control, token, HANDSHAKE_MS);
      await expectStrangersRefused(endpoint);
      return client;
    } catch (error) {
      client.close();
      throw fromServiceError(error, role, 'handshake', mask);
    }
  }

  /** The bytes of the one Result that an action answers with. */
  async actionBytes(type: string, request?: unknown, { signal, timeoutMs }: ActionOptions = {}): Promise<Uint8Array> {
    const body = request === undefined ? empty : Buffer.from(JSON.stringify(request));
    const client = type === ACTION.heartbeat || type === ACTION.shutdown ? this.#life : this.#control;
    const call = client.makeServerStreamRequest(
      FLIGHT_METHOD.doAction,
      actionMessage.encode,
      resultMessage.decode,
      { type, body },
      this.#metadata,
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
    );
    const results = await this.#answered(call, collected<Uint8Array>(call), type, signal);
    if (results.length !== 1) {
      throw new UrutauError('protocol-violation', `${type}: expected one result; came ${results.length} (ACT-1)`);
    }
    return results[0]!;
  }

  /** An action's JSON answer; undefined when its body is empty. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller names the answer's type, which the contract fixes
  async action<Answer = any>(type: string, request?: unknown, options?: ActionOptions): Promise<Answer> {
    const bytes = await this.actionBytes(type, request, options);
    if (bytes.length === 0) return undefined as Answer;
    try {
      return JSON.parse(Buffer.from(bytes).toString());
    } catch (error) {
      const cause = maskedCause(error, this.mask);
      throw new UrutauError('protocol-violation', `the answer of ${type} is not JSON`, { cause });
    }
  }

  /** Rejects too when nobody could connect any more, while what is connected goes on (LIFE-9). */
  async heartbeat(signal: AbortSignal): Promise<void> {
    await expectSocket(this.#endpoint);
    await this.actionBytes(ACTION.heartbeat, undefined, { signal });
  }

  async listActions({ signal }: ActionOptions = {}): Promise<string[]> {
    const call = this.#control.makeServerStreamRequest(
      FLIGHT_METHOD.listActions,
      () => emptyMessage.encode(),
      actionTypeMessage.decode,
      undefined,
      this.#metadata,
    );
    const actions = await this.#answered(call, collected<FlightActionType>(call), 'ListActions', signal);
    return actions.map(({ type }) => type);
  }

  /** INFO-4: refuses an answer without exactly one ordered endpoint. */
  async getFlightInfo(descriptor: ReadDescriptor, { signal }: ActionOptions = {}): Promise<FlightInfo> {
    const cmd = Buffer.from(JSON.stringify(descriptor));
    const { promise, resolve, reject } = settleable<FlightInfo>();
    const call = this.#control.makeUnaryRequest(
      FLIGHT_METHOD.getFlightInfo,
      descriptorMessage.encode,
      flightInfoMessage.decode,
      { cmd },
      this.#metadata,
      (error, value) => (error ? reject(error) : resolve(value!)),
    );
    const info = await this.#answered(call, promise, `GetFlightInfo of ${descriptor.table}`, signal);
    const { endpoints, ordered } = info;
    const ticketBytes = endpoints[0]?.ticket.length ?? 0;
    if (endpoints.length !== 1 || !ordered || ticketBytes > LIMIT.ticketBytesMax) {
      throw new UrutauError(
        'protocol-violation',
        `GetFlightInfo of ${descriptor.table}: expected one ordered endpoint with a ticket of at most ` +
          `${LIMIT.ticketBytesMax} bytes (INFO-4); came ${endpoints.length} ` +
          `${ordered ? 'ordered' : 'not ordered'}, the first with a ticket of ${ticketBytes} bytes`,
        { table: descriptor.table },
      );
    }
    return info;
  }

  /** Reads what a FlightInfo offers, until the signal aborts. */
  read(info: FlightInfo, table: string, { signal }: ActionOptions = {}): ReadStream {
    const call = this.#dataConnection().open(FLIGHT_METHOD.doGet);
    void call.write([ticketMessage.encode(info.endpoints[0]!.ticket)]).catch(() => {});
    call.endWrites();
    const stream = new ReadStream(call, table, this.mask);
    const close = () => stream.close();
    if (signal?.aborted) close();
    else signal?.addEventListener('abort', close, { once: true });
    void call.status.then(() => signal?.removeEventListener('abort', close));
    return stream;
  }

  /** Opens a write stream; the schema goes with the descriptor in the first message. */
  write(descriptor: WriteDescriptor, schema: Schema): WriteStream {
    const stream = new WriteStream(this.#dataConnection().open(FLIGHT_METHOD.doPut), descriptor.table, this.mask);
    const cmd = Buffer.from(JSON.stringify(descriptor));
    stream.start(encodeFlightData({ descriptor: { cmd }, dataHeader: encodeSchemaHeader(schema), body: [] }));
    return stream;
  }

  close(): void {
    this.#life.close();
    this.#control.close();
    for (const connection of this.#data) connection.close();
  }

  /** What a call answers; when the signal aborts the call is cancelled, and the signal's reason thrown. */
  async #answered<T>(call: { cancel(): void }, answer: Promise<T>, what: string, signal?: AbortSignal): Promise<T> {
    const cancel = () => call.cancel();
    if (signal?.aborted) cancel();
    else signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await answer;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw fromServiceError(error, this.role, what, this.mask);
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #dataConnection(): DataConnection {
    const free = this.#data.find(({ streams, usable }) => usable && streams < STREAMS_PER_CONNECTION);
    if (free) return free;
    const added = new DataConnection(this.#endpoint, this.#token);
    this.#data.push(added);
    return added;
  }
}

async function expectSocket(endpoint: string): Promise<void> {
  if (!endpoint.startsWith('unix:')) return;
  const path = endpoint.slice('unix:'.length);
  await access(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') return;
    throw new UrutauError('internal', `its socket ${path} was removed, and nobody can connect to it any more`, {
      remedy:
        'The host starts it again by itself, with another socket. Find what removed this one: the driver, or what clears ' +
        'temporary files on this machine.',
    });
  });
}

function handshake(client: Client, token: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = client.makeBidiStreamRequest(
      FLIGHT_METHOD.handshake,
      handshakeMessage.encode,
      handshakeMessage.decode,
      new Metadata(),
      { deadline: Date.now() + timeoutMs },
    );
    let answered = false;
    call.on('data', () => {
      answered = true;
    });
    call.on('error', reject);
    call.on('end', () => {
      if (answered) resolve();
      else reject(new UrutauError('protocol-violation', 'the driver ended the handshake without an answer (AUTH-1)'));
    });
    call.write(Buffer.from(token));
    call.end();
  });
}

/**
 * AUTH-4: whoever reaches a driver that checks no token can read the source, or write the destination, through it. The call
 * comes first, for the connection ends with a handshake that is refused (AUTH-1), and a call on it would fail for that.
 */
async function expectStrangersRefused(endpoint: string): Promise<void> {
  const stranger = connection(endpoint);
  try {
    const heartbeat = stranger.makeServerStreamRequest(
      FLIGHT_METHOD.doAction,
      actionMessage.encode,
      resultMessage.decode,
      { type: ACTION.heartbeat, body: empty },
      new Metadata(),
      { deadline: Date.now() + STRANGER_MS },
    );
    if (await succeeds(collected(heartbeat))) throw takesStrangers('a call without a bearer (AUTH-2)');
    const shaken = handshake(stranger, 'not the token', STRANGER_MS);
    if (await succeeds(shaken)) throw takesStrangers('a handshake with a wrong token (AUTH-1)');
  } finally {
    stranger.close();
  }
}

function succeeds(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => true,
    () => false,
  );
}

function takesStrangers(what: string): UrutauError {
  return new UrutauError('protocol-violation', `it answered ${what}, which it must refuse`, {
    remedy:
      'Whoever reaches its socket could read and write through it: the driver must compare the token in Handshake, ' +
      'and the bearer of every other call. Report it to its author.',
  });
}

async function collected<T>(call: AsyncIterable<T>): Promise<T[]> {
  const results: T[] = [];
  for await (const result of call) results.push(result);
  return results;
}

function settleable<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

function connection(endpoint: string): Client {
  return new Client(endpoint, credentials.createInsecure(), {
    'grpc.max_receive_message_length': LIMIT.messageBytesMax,
    'grpc.max_send_message_length': LIMIT.messageBytesMax,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
  });
}
