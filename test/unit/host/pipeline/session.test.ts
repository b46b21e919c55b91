import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { decodeCheckpoint, encodeCheckpoint } from '../../../../host/checkpoint/checkpoint.ts';
import { DeadLetterBox } from '../../../../host/pipeline/quarantine/dead-letter-box.ts';
import { runSession, type SessionHandle } from '../../../../host/pipeline/session.ts';
import { reasonOf, Table, type TableSettings } from '../../../../host/pipeline/table/table.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';
import { changes, offset, pictureOf, SmallSink, SmallSource } from './small-ports.ts';

const settings = (source: string, more: Partial<TableSettings> = {}): TableSettings => ({
  source,
  target: source,
  writeMode: 'upsert',
  onDelete: 'record',
  onPoison: 'pause',
  onTruncate: 'fail',
  createIfNotExists: true,
  ...more,
});

function session(names: string[], { untilCaughtUp = false, table: more = {} as Partial<TableSettings> } = {}) {
  const source = new SmallSource();
  const sink = new SmallSink();
  const states: string[] = [];
  let told = () => {};
  const tables = names.map(
    (name) =>
      new Table(settings(name, more), ({ state }) => {
        states.push(`${name} ${state.kind}`);
        told();
      }),
  );
  const stop = new AbortController();
  const handles: SessionHandle[] = [];
  const run = () =>
    runSession(
      {
        source: source.port,
        sink: sink.port,
        tables,
        writer: 'shop',
        run: 'r1',
        snapshotMode: 'initial',
        flush: { rows: 1, bytes: 1e9, intervalMs: 60_000 },
        windowBytes: 1e9,
        untilCaughtUp,
        log: new RecordingLog(),
        nowMs: () => performance.now(),
        wallMs: () => 0,
        faulted: (table, error) => void table.apply({ kind: 'fault', reason: reasonOf(error) }),
        announced: () => {},
        committed: () => {},
        deadLetters: new DeadLetterBox({
          sink: sink.port,
          target: 'urutau_dead_letters',
          writer: 'shop',
          run: 'r1',
          claim: { isMade: false },
        }),
        lettersVoid: () => {},
        opened: (handle) => handles.push(handle),
      },
      stop.signal,
    );
  const become = async (state: string) => {
    while (!states.includes(state)) {
      await new Promise<void>((resolve) => {
        told = resolve;
      });
    }
  };
  return { source, sink, tables, stop, run, handles, become };
}

/** What a table left in an earlier run. */
function done(sink: SmallSink, table: string, at = 1) {
  const shape = 'writeMode upsert, key of the source';
  const checkpoint = { v: 1, writer: 'shop', run: 'r0', source: 'small:1', stream: 1, commit: 1 } as const;
  sink.stored.set(
    table,
    encodeCheckpoint({ ...checkpoint, offset: offset(at), schemaId: null, shape, snapshot: 'done' }),
  );
}

test('a table that is paused while it is being assigned is not carried; the session begins anew without it', async () => {
  const { source, sink, tables, run, become, stop } = session(['orders', 'items']);
  done(sink, 'orders');
  done(sink, 'items');
  const reason = { by: 'user', code: 'paused', message: 'by hand', remedy: '' } as const;
  source.whileAssigning = () => void tables[0]!.apply({ kind: 'pause', reason });

  expect(await run()).toMatchObject({ kind: 'again', error: null });
  expect(source.opened).toEqual([]);

  const second = run();
  await become('items streaming');
  expect(source.assigned[1]).toEqual([
    { table: 'orders', fromOffset: offset(1), hold: true },
    { table: 'items', fromOffset: offset(1) },
  ]);
  stop.abort();
  await second;
});

test('the dead letters are made ready, and whoever wrote them before is fenced off, before a table is raised', async () => {
  const { sink, run, stop, become } = session(['orders'], { table: { onPoison: 'quarantine' } });
  const running = run();
  await become('orders snapshotting');
  stop.abort();
  await running;

  expect(sink.commits.map(({ table }) => table).slice(0, 2)).toEqual(['urutau_dead_letters', 'orders']);
});

test('quarantine is refused where the sink cannot say of which write stream a row was refused', async () => {
  const { sink, tables, run, stop, become } = session(['orders'], { table: { onPoison: 'quarantine' } });
  sink.positions = 'store';
  const running = run();
  await become('orders paused');
  stop.abort();
  await running;

  expect(tables[0]!.state).toMatchObject({
    reason: { code: 'config-invalid', message: 'onPoison: quarantine needs a sink with commit/1, which small is not' },
  });
});

test('a resync that is asked for while the table begins is left for the next session', async () => {
  const { sink, tables, run, become, stop } = session(['orders']);
  done(sink, 'orders');
  sink.whileCommitting = () => {
    tables[0]!.resyncAsked = true;
  };

  const ended = run();
  await become('orders streaming');
  stop.abort();
  await ended;

  expect(tables[0]!.resyncAsked).toBe(true);
});

test('a session that is stopped before its tables begin writes nothing', async () => {
  const { source, sink, run, stop } = session(['orders']);
  source.whileAssigning = () => stop.abort();

  expect(await run()).toEqual({ kind: 'stopped' });

  expect([source.opened, sink.commits]).toEqual([[], []]);
});

test('a last commit that the sink refuses takes back that everything is caught up', async () => {
  const { source, sink, tables, run } = session(['orders', 'items'], { untilCaughtUp: true });
  done(sink, 'orders');
  done(sink, 'items');
  source.head = offset(5);
  for (const table of ['orders', 'items']) source.give(`changes:${table}`, changes(1, 5));
  sink.whileCommitting = (table, number) => {
    if (table === 'orders' && number > 0) throw new UrutauError('row-refused', 'the target refuses a row');
  };

  await run();

  expect(tables.map(({ state }) => state.kind)).toEqual(['paused', 'done']);
});

test('a last commit that fails because the destination is away is made in another session', async () => {
  const { source, sink, run } = session(['orders'], { untilCaughtUp: true });
  done(sink, 'orders');
  source.head = offset(5);
  source.give('changes:orders', changes(1, 5));
  sink.whileCommitting = (_table, number) => {
    if (number > 0) throw new UrutauError('sink-unavailable', 'the destination is away');
  };

  expect(await run()).toMatchObject({ kind: 'again', error: { code: 'sink-unavailable' } });
});

test('the stream of a table whose shape cannot be written is closed, so that the source does not wait for it', async () => {
  const { source, sink, run, become, stop } = session(['orders'], { table: { primaryKey: ['missing'] } });
  source.isBase = true;

  const ended = run();
  await become('orders paused');
  stop.abort();
  await ended;

  expect([source.opened, [...source.open], sink.commits]).toEqual([['snapshot:orders'], [], []]);
});

test('a picture that is complete waits for the others, which a new session would have begun anew', async () => {
  const { source, sink, run } = session(['small', 'big'], { table: { writeMode: 'append', primaryKey: [] } });
  source.shape = { ...source.shape, before: 'full' };
  source.give('snapshot:small', pictureOf(1), 'end');
  source.give('snapshot:big', pictureOf(1));
  sink.whileCommitting = (table, number) => {
    if (table === 'small' && number === 2) source.give('snapshot:big', pictureOf(1), 'end');
  };

  const end = await run();

  expect(end).toMatchObject({ kind: 'again', error: null });
  const stored = ['small', 'big'].map((table) => decodeCheckpoint(sink.stored.get(table) as string, table).snapshot);
  expect(stored).toEqual(['done', 'done']);
});

test('after its picture a table of a base source goes on with the changes in the same session', async () => {
  const { source, sink, run, become, stop } = session(['orders']);
  source.isBase = true;
  source.give('snapshot:orders', pictureOf(3), 'end');
  source.give('changes:orders', changes(2, 4));

  const ended = run();
  await become('orders streaming');
  stop.abort();
  await ended;

  expect(source.opened).toEqual(['snapshot:orders', 'changes:orders']);
  expect(decodeCheckpoint(sink.stored.get('orders') as string, 'orders')).toMatchObject({
    stream: 2,
    snapshot: 'done',
  });
});

test('a table that is paused by a fault of the sink keeps its claim on the log', async () => {
  const { source, sink, tables, run } = session(['orders']);
  done(sink, 'orders');
  const refused = new UrutauError('precondition-failed', 'the target lacks a column');
  tables[0]!.apply({ kind: 'fault', reason: reasonOf(refused) });
  source.whileAssigning = () => {
    throw new UrutauError('source-unavailable', 'enough');
  };

  await expect(run()).rejects.toThrow('enough');

  expect(source.assigned).toEqual([[{ table: 'orders', fromOffset: offset(1), hold: true }]]);
});

test('a table that the source cannot read now is paused and keeps its claim on the log', async () => {
  const { source, sink, run, become, stop } = session(['orders', 'items']);
  done(sink, 'orders');
  done(sink, 'items');
  source.whileAssigning = ({ tables }) => {
    if (tables[0]!.hold) return;
    const failures = [{ table: 'orders', problem: 'the user may not read it', remedy: 'grant it' }];
    throw new UrutauError('precondition-failed', 'one table failed', { failures });
  };

  const ended = run();
  await become('items streaming');
  stop.abort();
  await ended;

  expect(source.assigned.at(-1)).toEqual([
    { table: 'orders', fromOffset: offset(1), hold: true },
    { table: 'items', fromOffset: offset(1) },
  ]);
});

test('a destination that refuses to tell any position ends the session before a claim on the log is given up', async () => {
  const { source, sink, run } = session(['orders', 'items']);
  const refused = new UrutauError('precondition-failed', 'permission denied for schema urutau');
  for (const table of ['orders', 'items']) sink.stored.set(table, refused);

  await expect(run()).rejects.toBe(refused);

  expect(source.assigned).toEqual([]);
});

test('a paused table whose claim the source refuses does not hold up the others', async () => {
  const { source, sink, tables, run, become, stop } = session(['orders', 'items']);
  done(sink, 'orders');
  done(sink, 'items');
  tables[0]!.apply({ kind: 'fault', reason: reasonOf(new UrutauError('row-refused', 'no')) });
  source.whileAssigning = ({ tables }) => {
    if (tables.length === 1) return;
    const failures = [{ table: 'orders', problem: 'gone', remedy: 'none', code: 'table-not-found' as const }];
    throw new UrutauError('precondition-failed', 'one table failed', { failures });
  };

  const ended = run();
  await become('items streaming');
  stop.abort();
  await ended;

  expect(source.assigned.map((request) => request.map(({ table }) => table))).toEqual([['orders', 'items'], ['items']]);
});

test('resync is refused before anything is assigned where the sink cannot truncate, and resume goes on as before', async () => {
  const { source, sink, tables, run, become, stop } = session(['orders']);
  done(sink, 'orders');
  sink.truncate = false;
  tables[0]!.resyncAsked = true;

  const ended = run();
  await become('orders paused');
  stop.abort();
  await ended;

  expect(source.assigned).toEqual([[{ table: 'orders', fromOffset: offset(1), hold: true }]]);
  expect(tables[0]!.resyncAsked).toBe(false);
});

test('resync replaces a checkpoint that cannot be read', async () => {
  const { source, sink, tables, run, become, stop } = session(['orders']);
  sink.stored.set('orders', 'something else');
  tables[0]!.resyncAsked = true;
  source.give('snapshot:orders', pictureOf(1));

  const ended = run();
  await become('orders snapshotting');
  stop.abort();
  await ended;

  expect(decodeCheckpoint(sink.stored.get('orders') as string, 'orders')).toMatchObject({ writer: 'shop', stream: 1 });
});
