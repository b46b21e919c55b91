import { Client, credentials, Metadata } from '@grpc/grpc-js';
import {
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
  UrutauError,
  type WriteDescriptor,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { ReadStream } from './read-stream.ts';
import { fromServiceError } from './service-error.ts';
import { WriteStream } from './write-stream.ts';

/** Receive window per stream and connection; the default of 64 KiB holds a relay at a third of its speed. */
const WINDOW_BYTES = 8 * 1024 * 1024;
const STREAMS_PER_CONNECTION = 50;
const HANDSHAKE_MS = 10_000;

const empty = new Uint8Array(0);
const identity = (bytes: Buffer): Buffer => bytes;

export interface ActionOptions {
  signal?: AbortSignal;
  /** None by default: a commit takes as long as it takes, and the heartbeat decides who is dead. */
  timeoutMs?: number;
}

/**
 * One driver process seen over Flight. Actions have a connection of their own, so that a heartbeat never queues behind
 * rows; data streams share further connections, at most `STREAMS_PER_CONNECTION` each.
 */
export class FlightClient {
  readonly role: 'source' | 'sink';
  readonly #endpoint: string;
  readonly #metadata = new Metadata();
  readonly #control: Client;
  readonly #data: { client: Client; streams: number }[] = [];

  private constructor(role: 'source' | 'sink', endpoint: string, token: string) {
    this.role = role;
    this.#endpoint = endpoint;
    this.#metadata.set('authorization', `Bearer ${token}`);
    this.#control = connection(endpoint);
  }

  /** Connects and shakes hands (AUTH-1). */
  static async connect(role: 'source' | 'sink', endpoint: string, token: string): Promise<FlightClient> {
    const client = new FlightClient(role, endpoint, token);
    try {
      await client.#handshake(token);
      return client;
    } catch (error) {
      client.close();
      throw fromServiceError(error, role, 'handshake');
    }
  }

  /** The bytes of the one Result that an action answers with. */
  async actionBytes(type: string, request?: unknown, { signal, timeoutMs }: ActionOptions = {}): Promise<Uint8Array> {
    signal?.throwIfAborted();
    const body = request === undefined ? empty : Buffer.from(JSON.stringify(request));
    const call = this.#control.makeServerStreamRequest(
      FLIGHT_METHOD.doAction,
      actionMessage.encode,
      resultMessage.decode,
      { type, body },
      this.#metadata,
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
    );
    const abort = () => call.cancel();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      const results: Uint8Array[] = [];
      for await (const result of call) results.push(result);
      if (results.length !== 1) {
        throw new UrutauError('protocol-violation', `${type}: expected one result; came ${results.length} (ACT-1)`);
      }
      return results[0]!;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw fromServiceError(error, this.role, type);
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** An action's JSON answer; undefined when its body is empty. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller names the answer's type, which the contract fixes
  async action<Answer = any>(type: string, request?: unknown, options?: ActionOptions): Promise<Answer> {
    const bytes = await this.actionBytes(type, request, options);
    if (bytes.length === 0) return undefined as Answer;
    try {
      return JSON.parse(Buffer.from(bytes).toString());
    } catch (cause) {
      throw new UrutauError('protocol-violation', `the answer of ${type} is not JSON`, { cause });
    }
  }

  async listActions(): Promise<string[]> {
    const call = this.#control.makeServerStreamRequest(
      FLIGHT_METHOD.listActions,
      () => emptyMessage.encode(),
      actionTypeMessage.decode,
      undefined,
      this.#metadata,
    );
    try {
      const names: string[] = [];
      for await (const { type } of call as AsyncIterable<FlightActionType>) names.push(type);
      return names;
    } catch (error) {
      throw fromServiceError(error, this.role, 'ListActions');
    }
  }

  /** INFO-3: refuses an answer without exactly one ordered endpoint. */
  async getFlightInfo(descriptor: ReadDescriptor): Promise<FlightInfo> {
    const cmd = Buffer.from(JSON.stringify(descriptor));
    const info = await new Promise<FlightInfo>((resolve, reject) => {
      this.#control.makeUnaryRequest(
        FLIGHT_METHOD.getFlightInfo,
        descriptorMessage.encode,
        flightInfoMessage.decode,
        { cmd },
        this.#metadata,
        (error, value) => (error ? reject(error) : resolve(value!)),
      );
    }).catch((error) => {
      throw fromServiceError(error, this.role, `GetFlightInfo of ${descriptor.table}`);
    });
    const { endpoints, ordered } = info;
    const ticketBytes = endpoints[0]?.ticket.length ?? 0;
    if (endpoints.length !== 1 || !ordered || ticketBytes > LIMIT.ticketBytesMax) {
      throw new UrutauError(
        'protocol-violation',
        `GetFlightInfo of ${descriptor.table}: expected one ordered endpoint with a ticket of at most ` +
          `${LIMIT.ticketBytesMax} bytes; came ${endpoints.length}, ${ordered ? 'ordered' : 'not ordered'}, ${ticketBytes} bytes`,
        { table: descriptor.table },
      );
    }
    return info;
  }

  /** Reads what a FlightInfo offers; the schema is checked against the one that the info announced. */
  read(info: FlightInfo, table: string): ReadStream {
    const slot = this.#dataSlot();
    const call = slot.client.makeServerStreamRequest(
      FLIGHT_METHOD.doGet,
      (ticket: Uint8Array) => resultMessage.encode(ticket),
      identity,
      info.endpoints[0]!.ticket,
      this.#metadata,
    );
    return new ReadStream(call, table, () => slot.streams--);
  }

  /** Opens a write stream; the schema goes with the descriptor in the first message. */
  write(descriptor: WriteDescriptor, schema: Schema): WriteStream {
    const slot = this.#dataSlot();
    const call = slot.client.makeBidiStreamRequest(FLIGHT_METHOD.doPut, identity as never, identity, this.#metadata);
    const stream = new WriteStream(call as never, descriptor.table, () => slot.streams--);
    const cmd = Buffer.from(JSON.stringify(descriptor));
    stream.start(encodeFlightData({ descriptor: { cmd }, dataHeader: encodeSchemaHeader(schema), body: [] }));
    return stream;
  }

  close(): void {
    this.#control.close();
    for (const { client } of this.#data) client.close();
  }

  #dataSlot(): { client: Client; streams: number } {
    let slot = this.#data.find(({ streams }) => streams < STREAMS_PER_CONNECTION);
    if (slot === undefined) {
      slot = { client: connection(this.#endpoint), streams: 0 };
      this.#data.push(slot);
    }
    slot.streams++;
    return slot;
  }

  #handshake(token: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = this.#control.makeBidiStreamRequest(
        FLIGHT_METHOD.handshake,
        handshakeMessage.encode,
        handshakeMessage.decode,
        new Metadata(),
        { deadline: Date.now() + HANDSHAKE_MS },
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
}

function connection(endpoint: string): Client {
  return new Client(endpoint, credentials.createInsecure(), {
    'grpc.max_receive_message_length': LIMIT.messageBytesMax,
    'grpc.max_send_message_length': LIMIT.messageBytesMax,
    'grpc.keepalive_time_ms': 30_000,
    'grpc-node.flow_control_window': WINDOW_BYTES,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
  });
}
