import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Family, parseExposition, renderExposition } from '../../../../host/observe/openmetrics.ts';

test('a counter, a histogram and a sample without a description are each one family', () => {
  const text = [
    '# HELP reads Reads so far.',
    '# TYPE reads counter',
    '# UNIT reads reads',
    'reads_total{table="a\\"b,}"} 3 1700000000 # {trace="x"} 1',
    'reads_created{table="a"} 1.7e9',
    '# TYPE wait histogram',
    'wait_bucket{le="+Inf"} 2',
    'wait_sum 0.5',
    'wait_count 2',
    'alone NaN',
    '# EOF',
  ].join('\n');

  expect(parseExposition(text)).toEqual([
    {
      name: 'reads',
      type: 'counter',
      help: 'Reads so far.',
      unit: 'reads',
      samples: [
        { name: 'reads_total', labels: [['table', 'a\\"b,}']], value: '3' },
        { name: 'reads_created', labels: [['table', 'a']], value: '1.7e9' },
      ],
    },
    {
      name: 'wait',
      type: 'histogram',
      help: null,
      unit: null,
      samples: [
        { name: 'wait_bucket', labels: [['le', '+Inf']], value: '2' },
        { name: 'wait_sum', labels: [], value: '0.5' },
        { name: 'wait_count', labels: [], value: '2' },
      ],
    },
    { name: 'alone', type: 'unknown', help: null, unit: null, samples: [{ name: 'alone', labels: [], value: 'NaN' }] },
  ]);
});

test('the older text format is understood: counters named by their sample, untyped, comments, no end', () => {
  const text = '# a comment\n# TYPE reads_total counter\nreads_total 3 1700000000000\n\n# TYPE x untyped\nx 1\n';

  expect(renderExposition(parseExposition(text))).toBe(
    '# TYPE reads counter\nreads_total 3\n# TYPE x unknown\nx 1\n# EOF\n',
  );
});

test.each([
  ['reads', 'line 2: expected a sample; came "reads"'],
  ['reads{a=1} 2', 'line 2: expected a sample; came "reads{a=1} 2"'],
  ['reads{a="1} 2', 'line 2: expected a sample; came "reads{a=\\"1} 2"'],
  ['reads two', 'line 2: expected a sample; came "reads two"'],
  ['<html>', 'line 2: expected a sample; came "<html>"'],
  ['# TYPE reads speed', 'line 2: "speed" is no type of a metric'],
])('the line %s is refused by its number', (line, message) => {
  expect(() => parseExposition(`ok 1\n${line}`)).toThrow(message);
});

test('what is rendered is read back as it was', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}[a-z]$/);
  const value = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n'));
  const labels = fc.array(fc.tuple(name, value), { maxLength: 3 });
  const number = fc.oneof(fc.integer(), fc.double({ noDefaultInfinity: true })).map(String);
  const family = fc
    .record({ name, samples: fc.array(fc.record({ labels, value: number }), { minLength: 1, maxLength: 3 }) })
    .map(
      ({ name, samples }): Family => ({
        name: `m_${name}`,
        type: 'gauge',
        help: 'Some words.',
        unit: null,
        samples: samples.map((sample) => ({ name: `m_${name}`, ...sample })),
      }),
    );

  fc.assert(
    fc.property(fc.uniqueArray(family, { selector: ({ name }) => name, maxLength: 4 }), (families) => {
      expect(parseExposition(renderExposition(families))).toEqual(families);
    }),
  );
});
