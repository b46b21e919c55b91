import { UrutauError } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { committingSink } from '../../../../../host/pipeline/sink/committing-sink.ts';
import { held, rows, servedSink } from '../served-sink.ts';
import { SHAPE } from '../shape.ts';

type Served = Awaited<ReturnType<typeof servedSink>>;

function sinkOf({ client }: Served) {
  const sink = committingSink(client, 'shop', 'orders', 7, SHAPE);
  onTestFinished(() => sink.close());
  return sink;
}

test('a commit before the first row goes through nothing and opens no stream', async () => {
  const served = await servedSink();

  await sinkOf(served).commit('c0', null);

  expect(served.calls).toEqual(['commit through 0']);
  expect(served.requests).toEqual([
    { writer: 'shop', table: 'orders', stream: 7, through: 0, checkpoint: 'c0', previous: null },
  ]);
});

test('rows, their cut and the rows behind it arrive in the order of the calls, numbered without a hole', async () => {
  const served = await servedSink();
  const sink = sinkOf(served);

  await Promise.all([sink.write(rows(2)), sink.write(rows(3)), sink.commit('c1', 'c0'), sink.write(rows(4))]);
  await served.asked('4: 4 rows');

  expect(served.calls.filter((call) => !call.startsWith('commit'))).toEqual([
    'open',
    '1: 2 rows',
    '2: 3 rows',
    '3: cut',
    '4: 4 rows',
  ]);
});

test('rows that are written while a cut travels do not belong to its commit', async () => {
  const slow = held();
  const served = await servedSink({ write: ({ seq }) => (seq === 1 ? slow.promise : Promise.resolve()) });
  const sink = sinkOf(served);

  await sink.write(rows(1));
  const committed = sink.commit('c1', 'c0');
  const behind = [sink.write(rows(1)), sink.write(rows(1))];
  slow.resolve();
  await Promise.all([committed, ...behind]);
  await sink.commit('c2', 'c1');

  expect(served.requests.map(({ through, checkpoint }) => [through, checkpoint])).toEqual([
    [2, 'c1'],
    [5, 'c2'],
  ]);
});

test('the commit is asked for only when its cut is on its way, and answered only when the sink has its rows', async () => {
  const slow = held();
  const served = await servedSink({ write: () => slow.promise });
  const sink = sinkOf(served);

  await sink.write(rows(1));
  const committed = sink.commit('c1', null);
  await served.asked('1: 1 rows');
  expect(served.requests).toEqual([]);
  slow.resolve();
  await committed;

  expect(served.calls).toEqual(['open', '1: 1 rows', '2: cut', 'commit through 2']);
});

test('a sink that breaks the stream is reported once, and nothing is written or committed behind it', async () => {
  const served = await servedSink({
    write: async () => {
      throw new UrutauError('row-refused', 'the target refuses row 0', { key: '7' });
    },
  });
  const sink = sinkOf(served);
  const failures: UrutauError[] = [];
  const reported = new Promise<void>((resolve) => {
    sink.onFailure = (error) => {
      failures.push(error);
      resolve();
    };
  });

  await sink.write(rows(1));
  await reported;

  await expect(sink.write(rows(1))).rejects.toMatchObject({ code: 'row-refused', context: { key: '7' } });
  await expect(sink.commit('c1', null)).rejects.toThrow('the target refuses row 0');
  expect(failures.map(({ message }) => message)).toEqual(['the target refuses row 0']);
  expect(served.requests).toEqual([]);
});

test('a stream that is closed is silent, and the sink forgets what no commit has covered', async () => {
  const served = await servedSink();
  const sink = sinkOf(served);
  const failures: UrutauError[] = [];
  sink.onFailure = (error) => failures.push(error);

  await sink.write(rows(1));
  await served.asked('1: 1 rows');
  sink.close();
  await served.asked('discard');

  expect(failures).toEqual([]);
});
