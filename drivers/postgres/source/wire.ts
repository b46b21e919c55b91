import { Socket, type SocketConstructorOpts } from 'node:net';
import { UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { asPgError } from '../connection.ts';

/** Takes the server's messages of one command. `start` to `end` is the message's body in `buffer`, valid in the call only. */
export interface WireHandler {
  /** A CopyData message, the only kind that is frequent. */
  copyData(buffer: Buffer, start: number, end: number): void;
  /** The server has begun to copy. Rows may follow at once, unless `hold` is called here. */
  started?(): void;
  /** Everything that was readable has been handled; false when the last read filled its buffer, so that more waits. */
  drained?(dry: boolean): void;
}

/**
 * A connection whose bytes the driver reads itself: a million CopyData messages a second pass here without an object for
 * each. pg opens it (authentication, TLS) and is out of the way from then on. One command at a time.
 */
export class Wire {
  readonly pid: number;
  readonly #socket: Socket;
  readonly #input: Input;
  #command: Command | null = null;
  #held = false;
  #closed: UrutauError | null = null;

  /** `replication` makes it a connection to a walsender. */
  static async connect(config: pg.ClientConfig, { replication = false } = {}): Promise<Wire> {
    const input = new Input();
    const client = new pg.Client({
      ...config,
      ...(replication ? { replication: 'database', options: `${config.options ?? ''} ${WALSENDER_OPTIONS}` } : {}),
      ...(config.ssl ? {} : { stream: () => input.socket }),
    } as pg.ClientConfig);
    client.on('error', () => {}); // Told by the socket's own `close`, to the command that is running.
    try {
      await client.connect();
    } catch (error) {
      throw asPgError(error, 'source');
    }
    return new Wire(client, input);
  }

  private constructor(client: pg.Client, input: Input) {
    const { connection, processID } = client as unknown as { connection: { stream: Socket }; processID: number };
    this.pid = processID;
    this.#socket = connection.stream;
    this.#input = input;
    // From the first byte of the first answer on: rows may come in the chunk that confirms the command.
    this.#socket.removeAllListeners('data');
    this.#input.takeOver(this.#socket, (dry) => this.#received(dry));
    this.#socket.on('error', (error) => this.#fail(asPgError(error, 'source')));
    this.#socket.on('close', () => this.#fail(lost()));
  }

  /** Runs SQL by the simple protocol; all values as the server's text. Statements may be joined with `;`. */
  async query(sql: string): Promise<(string | null)[][]> {
    const rows: (string | null)[][] = [];
    await this.#run(sql, { row: (row) => rows.push(row) });
    return rows;
  }

  /** Runs a COPY … TO STDOUT, or START_REPLICATION, to its end. */
  copy(sql: string, handler: WireHandler): Promise<void> {
    return this.#run(sql, { handler });
  }

  /** Sends one CopyData message. */
  writeCopyData(payload: Uint8Array): void {
    const header = Buffer.alloc(5);
    header[0] = MESSAGE.copyData;
    header.writeInt32BE(payload.length + 4, 1);
    this.#socket.write(Buffer.concat([header, payload]));
  }

  /**
   * Whether a pause lets much be read at once: over TCP the kernel collects what comes meanwhile. A unix socket's buffer
   * is too small for that, and under TLS the reads are small.
   */
  get readsInBulk(): boolean {
    return this.#socket === this.#input.socket && this.#socket.remoteAddress !== undefined;
  }

  /** Stops handling messages, from the next one on, until `release`. */
  hold(): void {
    if (this.#held) return;
    this.#held = true;
    this.#socket.pause();
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    const waiting = this.#input.hasMessages;
    this.#handleMessages();
    if (this.#held) return;
    this.#socket.resume();
    if (waiting) this.#drained(true);
  }

  /** Ends it at once; a running command fails. Resolves when the socket is closed. */
  async close(): Promise<void> {
    if (this.#socket.closed) return;
    const closed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    this.#fail(lost());
    this.#socket.destroy();
    await closed;
  }

  #run(sql: string, answer: Pick<Command, 'row' | 'handler'>): Promise<void> {
    if (this.#closed) return Promise.reject(this.#closed);
    if (this.#command) return Promise.reject(new UrutauError('internal', 'a connection runs one command at a time'));
    return new Promise((resolve, reject) => {
      this.#command = { ...answer, resolve, reject, error: null };
      const text = Buffer.from(`${sql}\0`);
      const header = Buffer.alloc(5);
      header[0] = MESSAGE.query;
      header.writeInt32BE(text.length + 4, 1);
      this.#socket.write(Buffer.concat([header, text]));
    });
  }

  #received(dry: boolean): void {
    if (this.#held) return;
    this.#handleMessages();
    if (!this.#held) this.#drained(dry);
  }

  #drained(dry: boolean): void {
    this.#attempt(() => this.#command?.handler?.drained?.(dry));
  }

  #handleMessages(): void {
    this.#attempt(() => {
      const input = this.#input;
      while (!this.#held && !this.#closed && input.nextMessage()) {
        const { buffer, type, bodyStart, bodyEnd } = input;
        if (type === MESSAGE.copyData && this.#command?.handler) {
          this.#command.handler.copyData(buffer, bodyStart, bodyEnd);
        } else {
          this.#control(type, buffer.subarray(bodyStart, bodyEnd));
        }
      }
    });
  }

  /** A handler that throws ends the connection: what follows could not be told from what was lost. */
  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(asPgError(error, 'source'));
      this.#socket.destroy();
    }
  }

  #control(type: number, body: Buffer): void {
    const command = this.#command;
    switch (type) {
      case MESSAGE.dataRow:
        command?.row?.(dataRow(body));
        return;
      case MESSAGE.error:
        if (command) command.error ??= asPgError(serverError(body), 'source');
        else this.#fail(asPgError(serverError(body), 'source'));
        return;
      case MESSAGE.readyForQuery:
        this.#command = null;
        if (command?.error) command.reject(command.error);
        else command?.resolve();
        return;
      case MESSAGE.copyDone:
        // The walsender wants the same answer; after COPY … TO STDOUT nothing is expected, and it is not sent.
        return;
      case MESSAGE.copyBoth:
      case MESSAGE.copyOut:
        command?.handler?.started?.();
        return;
      case MESSAGE.rowDescription:
      case MESSAGE.commandComplete:
      case MESSAGE.emptyQuery:
      case MESSAGE.notice:
      case MESSAGE.notification:
      case MESSAGE.parameterStatus:
        return;
      default:
        throw new UrutauError(
          'protocol-violation',
          `postgres: expected a message of protocol 3; came type 0x${type.toString(16)}`,
        );
    }
  }

  #fail(error: UrutauError): void {
    this.#closed ??= error;
    const command = this.#command;
    this.#command = null;
    // An error that the server gave as its last word says more than the closed socket after it.
    command?.reject(command.error ?? this.#closed);
  }
}

interface Command {
  row?: (row: (string | null)[]) => void;
  handler?: WireHandler;
  error: UrutauError | null;
  resolve(): void;
  reject(error: UrutauError): void;
}

const MESSAGE = {
  query: 0x51,
  copyData: 0x64,
  copyDone: 0x63,
  copyBoth: 0x57,
  copyOut: 0x48,
  dataRow: 0x44,
  rowDescription: 0x54,
  commandComplete: 0x43,
  emptyQuery: 0x49,
  readyForQuery: 0x5a,
  error: 0x45,
  notice: 0x4e,
  notification: 0x41,
  parameterStatus: 0x53,
} as const;

/** A server that asks whether we live is not heard while reading rests, so it must wait for our next report. */
const WALSENDER_OPTIONS = '-c wal_sender_timeout=60s';

const READ_BYTES = 1 << 20;
const READ_BYTES_MIN = 1 << 18;
const HEADER_BYTES = 5;

/** Reads into one buffer that is used again and again, and finds the messages in it. */
class Input {
  readonly socket: Socket;
  buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  /** Of the message that `nextMessage` found. */
  type = 0;
  bodyStart = 0;
  bodyEnd = 0;
  #start = 0;
  #end = 0;
  #readable = READ_BYTES;
  /** Turns of the event loop since the last chunk; -1 when nothing counts them. */
  #turnsQuiet = -1;
  #received: ((dry: boolean) => void) | null = null;

  constructor() {
    const onread = {
      buffer: () => this.#room(),
      callback: (bytes: number, into: Uint8Array) => this.#onRead(bytes, into),
    };
    // The types know `onread` for connect() only; the constructor takes it too, and pg calls connect() itself.
    this.socket = new Socket({ onread } as SocketConstructorOpts);
  }

  /** pg has done its part; what comes from now on is ours. A socket that is not `this.socket` (TLS) gives its chunks. */
  takeOver(socket: Socket, received: (dry: boolean) => void): void {
    this.#received = received;
    if (socket !== this.socket) socket.on('data', (chunk: Buffer) => this.#append(chunk));
  }

  get hasMessages(): boolean {
    return this.#end > this.#start;
  }

  /** False when no whole message is there. */
  nextMessage(): boolean {
    const { buffer } = this;
    const start = this.#start;
    if (this.#end - start < HEADER_BYTES) return false;
    const end = start + 1 + buffer.readInt32BE(start + 1);
    if (end < start + HEADER_BYTES)
      throw new UrutauError('protocol-violation', 'postgres: a message of negative length');
    if (end > this.#end) return false;
    this.type = buffer[start]!;
    this.bodyStart = start + HEADER_BYTES;
    this.bodyEnd = end;
    this.#start = end;
    return true;
  }

  #onRead(bytes: number, into: Uint8Array): boolean {
    if (this.#received === null) {
      // Still pg's: it listens to `data`, and keeps the bytes.
      this.socket.emit('data', Buffer.from(into.subarray(0, bytes)));
      return true;
    }
    this.#end += bytes;
    this.#received(bytes < this.#readable);
    return true;
  }

  /**
   * Where the next read goes: behind what has not been handled. Called right after each read, the only moment at which
   * bytes may move, because the socket holds on to what it was given last.
   */
  #room(): Uint8Array {
    if (this.#start > 0) {
      this.buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    if (this.buffer.length - this.#end < READ_BYTES_MIN) this.#resize(2 * this.buffer.length);
    else if (this.buffer.length > READ_BYTES && this.#end < READ_BYTES_MIN) this.#resize(READ_BYTES);
    this.#readable = this.buffer.length - this.#end;
    return this.buffer.subarray(this.#end);
  }

  #append(chunk: Buffer): void {
    while (this.#room().length < chunk.length) this.#resize(2 * this.buffer.length);
    chunk.copy(this.buffer, this.#end);
    this.#end += chunk.length;
    this.#received?.(false);
    if (this.#turnsQuiet < 0) setImmediate(() => this.#turn());
    this.#turnsQuiet = 0;
  }

  /** Chunks do not tell whether more can be read; two turns of the event loop without one do. */
  #turn(): void {
    this.#turnsQuiet++;
    if (this.#turnsQuiet < 2) {
      setImmediate(() => this.#turn());
      return;
    }
    this.#turnsQuiet = -1;
    this.#received?.(true);
  }

  #resize(bytes: number): void {
    const next = Buffer.allocUnsafeSlow(bytes);
    this.buffer.copy(next, 0, 0, this.#end);
    this.buffer = next;
  }
}

function dataRow(body: Buffer): (string | null)[] {
  const row: (string | null)[] = [];
  let at = 2;
  for (let count = body.readInt16BE(0); count > 0; count--) {
    const length = body.readInt32BE(at);
    at += 4;
    row.push(length < 0 ? null : body.toString('utf8', at, at + length));
    if (length > 0) at += length;
  }
  return row;
}

/** Shapes an ErrorResponse like pg's own errors, so that one place gives all of them their code. */
function serverError(body: Buffer): pg.DatabaseError {
  const fields: Record<string, string> = {};
  for (let at = 0; at < body.length && body[at] !== 0; ) {
    const end = body.indexOf(0, at);
    fields[String.fromCharCode(body[at]!)] = body.toString('utf8', at + 1, end);
    at = end + 1;
  }
  const error = new pg.DatabaseError(fields['M'] ?? 'the server gave no message', body.length, 'error');
  return Object.assign(error, {
    severity: fields['V'],
    code: fields['C'],
    detail: fields['D'],
    schema: fields['s'],
    table: fields['t'],
    column: fields['c'],
    dataType: fields['d'],
    constraint: fields['n'],
  });
}

function lost(): UrutauError {
  return new UrutauError('source-unavailable', 'postgres: the connection was closed');
}
