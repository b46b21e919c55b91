import type { TableStatus } from '../pipeline/pipeline.ts';
import { count } from './count.ts';

/** `public.orders -> bronze.orders: done; 5 rows copied, 2 inserts, 1 update, 0 deletes in 3 commits` */
export function tableLine({ source, target, state, totals }: TableStatus): string {
  const { snapshotRows, inserts, updates, deletes, commits, truncatesIgnored } = totals;
  const did = [
    `${count(snapshotRows, 'row')} copied`,
    count(inserts, 'insert'),
    count(updates, 'update'),
    count(deletes, 'delete'),
    ...(truncatesIgnored > 0 ? [`${count(truncatesIgnored, 'truncate')} ignored`] : []),
  ];
  return `${source} -> ${target}: ${state}; ${did.join(', ')} in ${count(commits, 'commit')}`;
}

/** Why a paused table stands still and what to do, in indented lines; none for a table that runs. */
export function pauseLines({ reason }: Pick<TableStatus, 'reason'>): string[] {
  if (reason === null) return [];
  const key = reason.key === undefined ? '' : ` (row with key ${reason.key})`;
  return [`  ${reason.by === 'user' ? '' : `${reason.code}: `}${reason.message}${key}`, `  remedy: ${reason.remedy}`];
}
