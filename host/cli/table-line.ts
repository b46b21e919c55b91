import type { TableStatus } from '../pipeline/status.ts';
import { count } from './count.ts';

/** `public.orders -> bronze.orders: done; 5 rows copied, 2 inserts, 1 update, 0 deletes in 3 commits` */
export function tableLine({ source, target, state, totals }: TableStatus): string {
  const { snapshotRows, inserts, updates, deletes, commits, truncatesIgnored, quarantined } = totals;
  const did = [
    `${count(snapshotRows, 'row')} copied`,
    count(inserts, 'insert'),
    count(updates, 'update'),
    count(deletes, 'delete'),
    ...(quarantined > 0 ? [`${count(quarantined, 'change')} quarantined`] : []),
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

/** What is set aside of a table and what to do, in lines; none for a table without quarantined keys. */
export function quarantineLines({ source, quarantined }: Pick<TableStatus, 'source' | 'quarantined'>): string[] {
  const { keys, last } = quarantined;
  if (keys === 0) return [];
  return [
    `${source}: ${count(keys, 'key')} quarantined`,
    ...(last === null ? [] : [`  last refused: ${last.key}: ${last.code}: ${last.reason}`]),
    `  remedy: correct what the target refuses, then run urutau-host table replay ${source}`,
  ];
}
