import type pg from 'pg';

/**
 * Per row of the source (`uid`): its changes in the destination, in order, must be the last ones of its history, and
 * its row in the snapshot must be what the changes before them made of it. Answers what is wrong, in words.
 */
export async function appendMistakes(source: pg.Client, sink: pg.Client, table: string): Promise<string[]> {
  const { rows: truth } = await source.query(`select uid, op, rev from truth where tab = '${table}' order by n`);
  const { rows: written } = await sink.query(
    `select coalesce(uid, _old_uid) as uid, _urutau_op as op, rev, _urutau_phase as phase
     from ${table} order by _urutau_position, rev`,
  );
  const histories = groupByUid(truth);
  const arrived = groupByUid(written);
  const mistakes: string[] = [];
  for (const [uid, history] of histories) {
    const rows = arrived.get(uid) ?? [];
    const initial = rows.filter(({ phase }) => phase === 'snapshot');
    const changes = rows.filter(({ phase }) => phase !== 'snapshot').map(said);
    const before = history.slice(0, history.length - changes.length);
    const after = history.slice(history.length - changes.length).map(said);
    if (changes.join() !== after.join()) mistakes.push(`${table} ${uid}: changes ${changes}; expected ${after}`);
    const last = before.at(-1);
    const expected = last === undefined || last.op === 'd' ? [] : [last.rev];
    if (initial.map(({ rev }) => rev).join() !== expected.join()) {
      mistakes.push(`${table} ${uid}: snapshot revs ${initial.map(({ rev }) => rev)}; expected ${expected}`);
    }
    if (mistakes.length > 5) break;
  }
  return mistakes;
}

interface Change {
  uid: string;
  op: string;
  rev: string;
  phase?: string;
}

function groupByUid(rows: Change[]): Map<string, Change[]> {
  const groups = new Map<string, Change[]>();
  for (const row of rows) {
    const group = groups.get(row.uid);
    if (group) group.push(row);
    else groups.set(row.uid, [row]);
  }
  return groups;
}

/** A delete's number is the source's alone. */
function said({ op, rev }: Change): string {
  return op === 'd' ? 'd' : `${op}${rev}`;
}
