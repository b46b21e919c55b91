import { expect, test } from 'vitest';
import { mergeMetrics } from '../../../../host/observe/merge-metrics.ts';

const own = '# TYPE urutau_rows counter\nurutau_rows_total{table="a"} 1\n# EOF\n';

test('a metric of both drivers is described once, and each sample says whose it is', () => {
  const text = (value: number) => `# HELP reads Reads.\n# TYPE reads counter\nreads_total ${value}\n# EOF\n`;

  const merged = mergeMetrics(own, [
    { role: 'source', driver: 'postgres', text: text(3) },
    { role: 'sink', driver: 'my "own"', text: text(4) },
  ]);

  expect(merged).toEqual({
    text: [
      '# TYPE urutau_rows counter',
      'urutau_rows_total{table="a"} 1',
      '# TYPE reads counter',
      '# HELP reads Reads.',
      'reads_total{driver="postgres",role="source"} 3',
      'reads_total{driver="my \\"own\\"",role="sink"} 4',
      '# EOF',
      '',
    ].join('\n'),
    leftOut: [],
  });
});

test("a driver's own labels driver and role are kept under other names", () => {
  const { text } = mergeMetrics(own, [{ role: 'sink', driver: 'd', text: 'x{role="leader",shard="1"} 5\n' }]);

  expect(text).toContain('x{driver="d",role="sink",exported_role="leader",shard="1"} 5\n');
});

test("a name of the host's, and a name that both drivers use differently, are left out and reported", () => {
  const { text, leftOut } = mergeMetrics(own, [
    { role: 'source', driver: 's', text: '# TYPE urutau_rows counter\nurutau_rows_total 9\n# TYPE q gauge\nq 1\n' },
    { role: 'sink', driver: 't', text: '# TYPE q counter\nq_total 1\nfine 2\n' },
  ]);

  expect(leftOut).toEqual([
    { role: 'source', problem: 'urutau_rows is a metric of the host' },
    { role: 'sink', problem: 'q is a gauge of the other driver, not a counter' },
  ]);
  expect(text).not.toContain(' 9\n');
  expect(text).toContain('fine{driver="t",role="sink"} 2\n');
});

test('a driver that answers something else costs its own metrics only', () => {
  const { text, leftOut } = mergeMetrics(own, [
    { role: 'source', driver: 's', text: '{"reads": 3}' },
    { role: 'sink', driver: 't', text: 'fine 2\n' },
  ]);

  expect(leftOut).toEqual([{ role: 'source', problem: 'line 1: expected a sample; came "{\\"reads\\": 3}"' }]);
  expect(text).toContain('fine{driver="t",role="sink"} 2\n');
});
