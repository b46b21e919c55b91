import type { Column } from '@urutau/sdk';
import { copyDataMessage, TUPLES_AT } from './copy-in.ts';
import { fieldEncoder, type Selection } from './field-encoder.ts';
import type { PgForm } from './pg-form.ts';

/** One field of every tuple: where its values come from. Tuples of neither part are NULL. */
export interface TupleField {
  readonly form: PgForm;
  readonly parts: readonly { readonly column: Column; readonly selection: Selection }[];
  /** Tuples that are NULL. */
  readonly nulls: readonly Selection[];
}

/** Puts two columns in front of the fields: the change's place in the commit, and whether it is a delete. */
export interface StagePrefix {
  readonly ordinal: (tuple: number) => number;
  readonly deletes: Uint8Array;
}

const FIELD_COUNT_BYTES = 2;
/** An int8 and a bool, each after its length. */
const PREFIX_BYTES = 4 + 8 + 4 + 1;
const TWO_32 = 4_294_967_296;

/**
 * `count` tuples as one ready-made CopyData message, written column by column: first the length of every tuple, then
 * the bytes. Throws RefusedValue for a value that its form cannot hold.
 */
export function tupleMessage(count: number, fields: readonly TupleField[], prefix: StagePrefix | null): Buffer {
  const encoders = fields.map(({ form, parts }) => parts.map(({ column }) => fieldEncoder(column, form)));
  const cursors = new Int32Array(count).fill(FIELD_COUNT_BYTES + (prefix ? PREFIX_BYTES : 0));
  for (const [index, { parts, nulls }] of fields.entries()) {
    for (const [part, { selection }] of parts.entries()) encoders[index]![part]!.measure(selection, cursors);
    for (const { tuples, length } of nulls) for (let i = 0; i < length; i++) cursors[tuples[i]!]! += 4;
  }
  let end = TUPLES_AT;
  for (let tuple = 0; tuple < count; tuple++) {
    const size = cursors[tuple]!;
    cursors[tuple] = end;
    end += size;
  }
  const bytes = copyDataMessage(end - TUPLES_AT);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  writePrefixes(count, fields.length, prefix, view, cursors);
  const frame = { bytes, view, cursors };
  for (const [index, { parts, nulls }] of fields.entries()) {
    for (const [part, { selection }] of parts.entries()) encoders[index]![part]!.write(selection, frame);
    for (const { tuples, length } of nulls) {
      for (let i = 0; i < length; i++) {
        view.setInt32(cursors[tuples[i]!]!, -1);
        cursors[tuples[i]!]! += 4;
      }
    }
  }
  return bytes;
}

function writePrefixes(
  count: number,
  fieldCount: number,
  prefix: StagePrefix | null,
  view: DataView,
  cursors: Int32Array,
): void {
  for (let tuple = 0; tuple < count; tuple++) {
    const at = cursors[tuple]!;
    if (prefix === null) {
      view.setInt16(at, fieldCount);
      cursors[tuple] = at + FIELD_COUNT_BYTES;
      continue;
    }
    const ordinal = prefix.ordinal(tuple);
    const high = Math.floor(ordinal / TWO_32);
    view.setInt16(at, fieldCount + 2);
    view.setInt32(at + 2, 8);
    view.setInt32(at + 6, high);
    view.setUint32(at + 10, ordinal - high * TWO_32);
    view.setInt32(at + 14, 1);
    view.setUint8(at + 18, prefix.deletes[tuple]!);
    cursors[tuple] = at + FIELD_COUNT_BYTES + PREFIX_BYTES;
  }
}

/** The bytes of field `index` of tuple `tuple` of a message; null for NULL. For errors, not for speed. */
export function fieldOf(message: Buffer, tuple: number, index: number): Buffer | null {
  let at = TUPLES_AT;
  for (let current = 0; ; current++) {
    const fields = message.readInt16BE(at);
    at += FIELD_COUNT_BYTES;
    for (let field = 0; field < fields; field++) {
      const size = message.readInt32BE(at);
      at += 4;
      if (current === tuple && field === index) return size < 0 ? null : message.subarray(at, at + size);
      at += Math.max(size, 0);
    }
  }
}
