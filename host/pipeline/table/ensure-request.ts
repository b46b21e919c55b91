import { type EnsureRequest, encodeSchema, rowSchema, type TableShape } from '@urutau/contract';
import type { TableSettings } from './table.ts';

/** What the sink is asked for before rows of this shape are written; `source` is the source driver's name. */
export function ensureRequest(
  { target, writeMode, createIfNotExists, onDelete }: TableSettings,
  shape: TableShape,
  { writer, source }: { writer: string; source: string },
): EnsureRequest {
  return {
    table: target,
    writer,
    schema: Buffer.from(encodeSchema(rowSchema(shape))).toString('base64'),
    primaryKey: shape.primaryKey,
    writeMode,
    createIfNotExists,
    evolve: false,
    check: false,
    options: { source, onDelete },
  };
}
