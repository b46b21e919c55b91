import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import * as protoLoader from '@grpc/proto-loader';

const PROTO = fileURLToPath(new URL('../../../contract/flight.proto', import.meta.url));
const definition = protoLoader.loadSync(PROTO, { longs: Number, defaults: true });
// biome-ignore lint/suspicious/noExplicitAny: made at run time from the proto file
const { FlightService } = (grpc.loadPackageDefinition(definition) as any).arrow.flight.protocol;

/** A stock Flight client, made from the proto file: none of the project's codecs take part. */
export class FlightClient {
  // biome-ignore lint/suspicious/noExplicitAny: made at run time from the proto file
  readonly rpc: any;
  readonly #token: string;

  constructor(address: string, token: string) {
    const options = { 'grpc.max_receive_message_length': 32 << 20, 'grpc.use_local_subchannel_pool': 1 };
    this.rpc = new FlightService(address, grpc.credentials.createInsecure(), options);
    this.#token = token;
  }

  close(): void {
    this.rpc.close();
  }

  bearer(token = this.#token): grpc.Metadata {
    const metadata = new grpc.Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    return metadata;
  }

  /** The body of the one result, parsed; undefined when it is empty. */
  async action(type: string, body?: unknown): Promise<unknown> {
    const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body));
    const results = await collect(this.rpc.doAction({ type, body: bytes }, this.bearer()));
    if (results.length !== 1) throw new Error(`expected one result of ${type}; came ${results.length}`);
    const text = results[0].body.toString();
    return text === '' ? undefined : JSON.parse(text);
  }

  async listActions(): Promise<string[]> {
    return (await collect(this.rpc.listActions({}, this.bearer()))).map(({ type }) => type);
  }

  info(descriptor: object, metadata = this.bearer()): Promise<FlightInfo> {
    const request = { type: 'CMD', cmd: Buffer.from(JSON.stringify(descriptor)) };
    return new Promise((resolve, reject) => {
      this.rpc.getFlightInfo(request, metadata, (error: Error | null, info: FlightInfo) =>
        error ? reject(error) : resolve(info),
      );
    });
  }

  /** An open DoGet; the caller cancels it. */
  read(ticket: Uint8Array): grpc.ClientReadableStream<FlightData> {
    const call = this.rpc.doGet({ ticket }, this.bearer());
    call.on('error', () => {});
    return call;
  }

  /** Sends messages as one DoPut; resolves when the stream has ended in order. */
  async write(messages: readonly object[]): Promise<void> {
    const call = this.rpc.doPut(this.bearer());
    const ended = collect(call);
    for (const message of messages) call.write(message);
    call.end();
    await ended;
  }
}

export interface FlightInfo {
  schema: Buffer;
  endpoint: { ticket: { ticket: Buffer } }[];
  ordered: boolean;
  totalRecords: number;
  appMetadata: Buffer;
}

export interface FlightData {
  dataHeader: Buffer;
  dataBody: Buffer;
  appMetadata: Buffer;
}

/** Everything that a stream of answers brings, or its error. */
// biome-ignore lint/suspicious/noExplicitAny: messages of a client made at run time
export async function collect(call: AsyncIterable<any>): Promise<any[]> {
  const answers = [];
  for await (const answer of call) answers.push(answer);
  return answers;
}
