import { asUrutauError, type ChangeBatch, type Envelope, type TableEvent, UrutauError } from '@urutau/sdk';
import { timestampText } from './iso-time.ts';
import { objectText, type ValueText } from './json-values.ts';

/** Lines are handed out in texts of about this length, so that a batch of 32 MiB does not become 100 MiB of text. */
const TEXT_CHARS = 512 * 1024;

/** The batch's changes, one line each, in texts of many lines. Throws `row-refused` for a value without a JSON form. */
export function* rowLines(table: string, batch: ChangeBatch): Generator<string> {
  const lineOf = lineWriter(table, batch);
  let text = '';
  for (let row = 0; row < batch.rows; row++) {
    text += lineOf(row);
    if (text.length < TEXT_CHARS) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** The line of what is no row: a truncate, or a change of the schema. */
export function eventLine(table: string, { offset, commitTs, phase }: Envelope, event: TableEvent): string {
  const { kind, ...details } = event;
  return `${JSON.stringify({ table, op: kind, ...details, position: offset ?? null, ts: commitTs ?? null, phase: phase ?? null })}\n`;
}

function lineWriter(table: string, batch: ChangeBatch): ValueText {
  const { primaryKey, before: image } = batch.shape;
  const isKey = (column: { field: { name: string } }) => primaryKey.includes(column.field.name);
  const { after, before } = batch;
  const keyAfter = objectText(after.filter(isKey));
  const afterText = objectText(after);
  const keyBefore = before && objectText(before.filter(isKey));
  // Where the image holds the key alone, its other columns mean nothing (SCH-6).
  const beforeText = before && (image === 'key' && primaryKey.length > 0 ? keyBefore : objectText(before));
  const head = `{"table":${JSON.stringify(table)},"op":"`;
  const tail = `,"phase":${JSON.stringify(batch.envelope.phase ?? null)}}\n`;
  const ts = repeating(batch);

  const keyOf = (row: number): string => {
    if (primaryKey.length === 0) return '';
    return batch.hasAfter(row) ? keyAfter(row) : batch.hasBefore(row) && keyBefore ? keyBefore(row) : '';
  };
  return (row) => {
    try {
      const key = keyOf(row);
      let line = `${head}${batch.op(row)}"`;
      if (key !== '') line += `,"key":${key}`;
      if (beforeText && batch.hasBefore(row)) line += `,"before":${beforeText(row)}`;
      if (batch.hasAfter(row)) line += `,"after":${afterText(row)}`;
      return `${line},"position":"${base64(batch.offset(row))}","ts":${ts(row)}${tail}`;
    } catch (error) {
      throw located(error, table, batch.envelope.seq, row, keyOf);
    }
  };
}

/** Rows of one transaction share their time, so the last text is mostly the next one too. */
function repeating(batch: ChangeBatch): ValueText {
  let lastNanos: bigint | null = null;
  let lastText = 'null';
  return (row) => {
    const nanos = batch.tsSourceNanos(row);
    if (nanos === null) return 'null';
    if (nanos !== lastNanos) {
      lastNanos = nanos;
      lastText = `"${timestampText(nanos, 1_000_000_000n)}Z"`;
    }
    return lastText;
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
}

function located(error: unknown, table: string, seq: number, row: number, keyOf: ValueText): UrutauError {
  const { code, message, context, remedy, cause } = asUrutauError(error);
  const key = code === 'row-refused' ? keyOf(row) : undefined;
  return new UrutauError(code, `${table}: ${message}`, { ...context, table, seq, row, key, remedy, cause });
}
