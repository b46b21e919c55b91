import { changeSchema, type TableShape } from '@urutau/contract';
import { type Batch, batchOf } from '../batch.ts';
import { emptyBatchHeader } from '../sink/empty-batch.ts';

/** The event with which a snapshot into a target that holds rows begins, so that no deleted row survives. */
export function truncateBatch(shape: TableShape): Batch {
  return batchOf(
    { seq: 0, rows: 0, event: { kind: 'truncate' }, phase: 'snapshot' },
    emptyBatchHeader(changeSchema(shape)),
    [],
  );
}
