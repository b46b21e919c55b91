import { Field, Schema, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import { pairColumns } from '../../../../host/verify/column-pairs.ts';
import { keyText } from '../../../../host/verify/key-text.ts';

const SCHEMA = new Schema([new Field('k', new Utf8(), true)]);
const PAIRS = pairColumns(SCHEMA, SCHEMA, ['k'], { source: 'public.t', target: 't' });

test.each([
  ['plain', 'k=plain'],
  ["o'k é \u{1f980}", "k=o'k é \u{1f980}"],
  [null, 'k=null'],
  ['null', 'k="null"'],
  ['', 'k=""'],
  ['ab  ', 'k="ab  "'],
  ['a, l=2', 'k="a, l=2"'],
  ['a\n  extra  k=7', 'k="a\\n  extra  k=7"'],
  ['\u001b[2J\u009b', 'k="\\u001b[2J\\u009b"'],
])('the key %j is written so that it can be told from any other: %s', (value, text) => {
  const [batch] = new Table(SCHEMA, { k: vectorFromArray([value], new Utf8()) }).batches;

  expect(keyText(batch!, 0, PAIRS, 'source')).toBe(text);
});
