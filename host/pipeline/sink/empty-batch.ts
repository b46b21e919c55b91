import { encodeBatchHeader } from '@urutau/contract';
import type { Field, Schema } from 'apache-arrow';
import { bufferCount } from '../source/base-batches.ts';

/** The header of a batch without rows, which carries an envelope alone. It has no body. */
export function emptyBatchHeader(schema: Schema): Uint8Array {
  const nodes = Array.from({ length: sum(schema.fields, nodeCount) }, () => ({ length: 0, nullCount: 0 }));
  const buffers = Array.from({ length: sum(schema.fields, bufferCount) }, () => ({ offset: 0, length: 0 }));
  return encodeBatchHeader({ length: 0, nodes, buffers, bodyLength: 0 });
}

function nodeCount(field: Field): number {
  return 1 + sum(field.type.children ?? [], nodeCount);
}

function sum(fields: readonly Field[], of: (field: Field) => number): number {
  return fields.reduce((total, field) => total + of(field), 0);
}
