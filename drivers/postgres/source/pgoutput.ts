import { UrutauError } from '@urutau/sdk';
import type { Lsn } from '../lsn.ts';

/** Tags of a tuple's values. `unchanged` is a TOASTed value the server did not send: it must not become NULL. */
export const VALUE = { null: 0x6e, unchanged: 0x75, text: 0x74, binary: 0x62 } as const;

/** The values of one row, lying in the frame's buffer: value i is the `lengths[i]` bytes at `starts[i]`. */
export interface TupleView {
  /** Number of values; the arrays may be longer. */
  readonly count: number;
  /** One of VALUE each. */
  readonly kinds: Uint8Array;
  readonly starts: Uint32Array;
  readonly lengths: Uint32Array;
}

export interface RelationColumn {
  readonly name: string;
  readonly typeOid: number;
  readonly typmod: number;
  /** Part of the replica identity. */
  readonly key: boolean;
}

/** Times are microseconds since 1970. */
export type PgMessage =
  | BeginMessage
  | CommitMessage
  | OriginMessage
  | RelationMessage
  | TypeMessage
  | InsertMessage
  | UpdateMessage
  | DeleteMessage
  | TruncateMessage
  | LogicalMessage;

export interface BeginMessage {
  readonly kind: 'begin';
  readonly commitLsn: Lsn;
  readonly commitMicros: number;
  readonly xid: number;
}

export interface CommitMessage {
  readonly kind: 'commit';
  readonly commitLsn: Lsn;
  readonly endLsn: Lsn;
  readonly commitMicros: number;
}

export interface OriginMessage {
  readonly kind: 'origin';
  readonly commitLsn: Lsn;
  readonly name: string;
}

export interface RelationMessage {
  readonly kind: 'relation';
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
  readonly replicaIdentity: ReplicaIdentity;
  readonly columns: readonly RelationColumn[];
}

export type ReplicaIdentity = 'default' | 'nothing' | 'full' | 'index';

export interface TypeMessage {
  readonly kind: 'type';
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
}

export interface InsertMessage {
  readonly kind: 'insert';
  readonly relationOid: number;
  readonly after: TupleView;
}

export interface UpdateMessage {
  readonly kind: 'update';
  readonly relationOid: number;
  /** What `before` holds: nothing, the key alone (the others NULL), or the whole old row. */
  readonly beforeImage: 'none' | 'key' | 'full';
  readonly before: TupleView;
  readonly after: TupleView;
}

export interface DeleteMessage {
  readonly kind: 'delete';
  readonly relationOid: number;
  readonly beforeImage: 'key' | 'full';
  readonly before: TupleView;
}

export interface TruncateMessage {
  readonly kind: 'truncate';
  readonly relationOids: readonly number[];
  readonly cascade: boolean;
  readonly restartIdentity: boolean;
}

/** Written by pg_logical_emit_message. */
export interface LogicalMessage {
  readonly kind: 'message';
  readonly transactional: boolean;
  readonly lsn: Lsn;
  readonly prefix: string;
  /** A view of the frame. */
  readonly content: Uint8Array;
}

/**
 * Decodes pgoutput (proto_version 1). Messages of rows are one object each, used again and again, and their values stay
 * in the frame: what `decode` returns is valid until its next call and for as long as the buffer stays as it is.
 */
export class PgoutputDecoder {
  readonly #cursor = new FrameCursor();
  readonly #before = new Tuple();
  readonly #after = new Tuple();
  readonly #insert = { kind: 'insert' as const, relationOid: 0, after: this.#after };
  readonly #update = {
    kind: 'update' as const,
    relationOid: 0,
    beforeImage: 'none' as UpdateMessage['beforeImage'],
    before: this.#before,
    after: this.#after,
  };
  readonly #delete = {
    kind: 'delete' as const,
    relationOid: 0,
    beforeImage: 'key' as DeleteMessage['beforeImage'],
    before: this.#before,
  };

  /** One frame: `buffer` from `start` to `end`. Throws `protocol-violation` on anything it does not fully understand. */
  decode(buffer: Uint8Array, start: number, end: number): PgMessage {
    const cursor = this.#cursor;
    cursor.open(buffer, start, end);
    const message = this.#decodeBody(cursor, cursor.uint8());
    cursor.expectEnd();
    return message;
  }

  #decodeBody(cursor: FrameCursor, tag: number): PgMessage {
    switch (tag) {
      case TAG.insert:
        return this.#decodeInsert(cursor);
      case TAG.update:
        return this.#decodeUpdate(cursor);
      case TAG.delete:
        return this.#decodeDelete(cursor);
      case TAG.begin:
        return { kind: 'begin', commitLsn: cursor.lsn(), commitMicros: cursor.micros(), xid: cursor.uint32() };
      case TAG.commit:
        return decodeCommit(cursor);
      case TAG.relation:
        return decodeRelation(cursor);
      case TAG.type:
        return { kind: 'type', oid: cursor.uint32(), schema: cursor.string(), name: cursor.string() };
      case TAG.origin:
        return { kind: 'origin', commitLsn: cursor.lsn(), name: cursor.string() };
      case TAG.truncate:
        return decodeTruncate(cursor);
      case TAG.message:
        return decodeLogicalMessage(cursor);
      default:
        throw cursor.violation('a message of protocol version 1', tag);
    }
  }

  #decodeInsert(cursor: FrameCursor): InsertMessage {
    const message = this.#insert;
    message.relationOid = cursor.uint32();
    const tag = cursor.uint8();
    if (tag !== TAG.newTuple) throw cursor.violation('the new row of an insert', tag);
    this.#after.decode(cursor);
    return message;
  }

  #decodeUpdate(cursor: FrameCursor): UpdateMessage {
    const message = this.#update;
    message.relationOid = cursor.uint32();
    message.beforeImage = 'none';
    let tag = cursor.uint8();
    if (tag === TAG.oldKey || tag === TAG.oldTuple) {
      message.beforeImage = tag === TAG.oldKey ? 'key' : 'full';
      this.#before.decode(cursor);
      tag = cursor.uint8();
    }
    if (tag !== TAG.newTuple) throw cursor.violation('the new row of an update', tag);
    this.#after.decode(cursor);
    return message;
  }

  #decodeDelete(cursor: FrameCursor): DeleteMessage {
    const message = this.#delete;
    message.relationOid = cursor.uint32();
    const tag = cursor.uint8();
    if (tag !== TAG.oldKey && tag !== TAG.oldTuple) throw cursor.violation('the old row of a delete', tag);
    message.beforeImage = tag === TAG.oldKey ? 'key' : 'full';
    this.#before.decode(cursor);
    return message;
  }
}

const TAG = {
  begin: 0x42,
  commit: 0x43,
  delete: 0x44,
  insert: 0x49,
  message: 0x4d,
  origin: 0x4f,
  relation: 0x52,
  truncate: 0x54,
  update: 0x55,
  type: 0x59,
  newTuple: 0x4e,
  oldKey: 0x4b,
  oldTuple: 0x4f,
} as const;

function decodeCommit(cursor: FrameCursor): CommitMessage {
  const flags = cursor.uint8();
  if (flags !== 0) throw cursor.violation('a commit without flags', flags);
  return { kind: 'commit', commitLsn: cursor.lsn(), endLsn: cursor.lsn(), commitMicros: cursor.micros() };
}

function decodeRelation(cursor: FrameCursor): RelationMessage {
  const oid = cursor.uint32();
  const schema = cursor.string();
  const name = cursor.string();
  const replicaIdentity = decodeReplicaIdentity(cursor);
  const columns = Array.from({ length: cursor.uint16() }, () => decodeRelationColumn(cursor));
  return { kind: 'relation', oid, schema, name, replicaIdentity, columns };
}

function decodeReplicaIdentity(cursor: FrameCursor): ReplicaIdentity {
  const tag = cursor.uint8();
  switch (tag) {
    case 0x64:
      return 'default';
    case 0x6e:
      return 'nothing';
    case 0x66:
      return 'full';
    case 0x69:
      return 'index';
    default:
      throw cursor.violation('a replica identity', tag);
  }
}

function decodeRelationColumn(cursor: FrameCursor): RelationColumn {
  const flags = cursor.uint8();
  if (flags > 1) throw cursor.violation('flags of a column', flags);
  return { key: flags === 1, name: cursor.string(), typeOid: cursor.uint32(), typmod: cursor.int32() };
}

function decodeTruncate(cursor: FrameCursor): TruncateMessage {
  const count = cursor.uint32();
  const options = cursor.uint8();
  if (options > 3) throw cursor.violation('options of a truncate', options);
  const relationOids: number[] = [];
  for (let i = 0; i < count; i++) relationOids.push(cursor.uint32());
  return { kind: 'truncate', relationOids, cascade: (options & 1) !== 0, restartIdentity: (options & 2) !== 0 };
}

function decodeLogicalMessage(cursor: FrameCursor): LogicalMessage {
  const flags = cursor.uint8();
  if (flags > 1) throw cursor.violation('flags of a logical message', flags);
  const lsn = cursor.lsn();
  const prefix = cursor.string();
  return { kind: 'message', transactional: flags === 1, lsn, prefix, content: cursor.bytes(cursor.uint32()) };
}

class Tuple implements TupleView {
  count = 0;
  kinds = new Uint8Array(64);
  starts = new Uint32Array(64);
  lengths = new Uint32Array(64);

  decode(cursor: FrameCursor): void {
    const count = cursor.uint16();
    if (count > this.kinds.length) this.#grow(count);
    const { kinds, starts, lengths } = this;
    for (let i = 0; i < count; i++) {
      const kind = cursor.uint8();
      kinds[i] = kind;
      switch (kind) {
        case VALUE.text:
        case VALUE.binary: {
          const length = cursor.uint32();
          starts[i] = cursor.take(length);
          lengths[i] = length;
          break;
        }
        case VALUE.null:
        case VALUE.unchanged:
          starts[i] = 0;
          lengths[i] = 0;
          break;
        default:
          throw cursor.violation('a value of a row', kind);
      }
    }
    this.count = count;
  }

  #grow(count: number): void {
    this.kinds = new Uint8Array(count);
    this.starts = new Uint32Array(count);
    this.lengths = new Uint32Array(count);
  }
}

/** Microseconds from 1970 to 2000, where the server's time begins. */
const EPOCH_MICROS = 946_684_800_000_000;

class FrameCursor {
  #buffer: Uint8Array = new Uint8Array(0);
  #start = 0;
  #at = 0;
  #end = 0;

  open(buffer: Uint8Array, start: number, end: number): void {
    this.#buffer = buffer;
    this.#start = start;
    this.#at = start;
    this.#end = end;
  }

  /** The place of the next `count` bytes. Every read passes through here. */
  take(count: number): number {
    const at = this.#at;
    if (count > this.#end - at) throw this.#truncated(count);
    this.#at = at + count;
    return at;
  }

  uint8(): number {
    return this.#buffer[this.take(1)]!;
  }

  uint16(): number {
    const at = this.take(2);
    return (this.#buffer[at]! << 8) | this.#buffer[at + 1]!;
  }

  int32(): number {
    const at = this.take(4);
    const buffer = this.#buffer;
    return (buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!;
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  lsn(): Lsn {
    const high = this.uint32();
    return ((BigInt(high) << 32n) | BigInt(this.uint32())) as Lsn;
  }

  /** The server's time, from its own epoch to 1970. */
  micros(): number {
    const high = this.int32();
    const micros = high * 4_294_967_296 + this.uint32() + EPOCH_MICROS;
    if (!Number.isSafeInteger(micros)) throw this.violation('a commit time before the year 2255', high >>> 24);
    return micros;
  }

  bytes(length: number): Uint8Array {
    const at = this.take(length);
    return this.#buffer.subarray(at, at + length);
  }

  /** Up to a zero byte. */
  string(): string {
    const at = this.#at;
    let end = at;
    while (this.uint8() !== 0) end++;
    return utf8.decode(this.#buffer.subarray(at, end));
  }

  expectEnd(): void {
    if (this.#at !== this.#end) {
      throw new UrutauError(
        'protocol-violation',
        `pgoutput: expected the end of the message after ${this.#at - this.#start} bytes; came ${this.#end - this.#at} more`,
        { remedy: REMEDY },
      );
    }
  }

  violation(expected: string, came: number): UrutauError {
    return new UrutauError(
      'protocol-violation',
      `pgoutput: expected ${expected}; came 0x${came.toString(16).padStart(2, '0')} before byte ${this.#at - this.#start}`,
      { remedy: REMEDY },
    );
  }

  #truncated(count: number): UrutauError {
    return new UrutauError(
      'protocol-violation',
      `pgoutput: expected ${count} bytes at byte ${this.#at - this.#start}; the message ends at byte ${this.#end - this.#start}`,
      { remedy: REMEDY },
    );
  }
}

const REMEDY = 'The server speaks pgoutput otherwise than this driver knows; report it with the server version.';

const utf8 = new TextDecoder();
