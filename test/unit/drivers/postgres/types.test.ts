import { METADATA, UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { type ColumnFacts, fieldFor, typeOf } from '../../../../drivers/postgres/types.ts';

const COLUMN: ColumnFacts = {
  column: 'c',
  oid: 25,
  typmod: -1,
  name: 'text',
  type: 'b',
  category: 'S',
  base: null,
  formatted: 'text',
  notNull: false,
  key: false,
};

/** As the server packs precision and scale. */
function numeric(precision: number, scale: number): Partial<ColumnFacts> {
  return { oid: 1700, name: 'numeric', typmod: ((precision << 16) | (scale & 0x7ff)) + 4 };
}

test.each<[string, Partial<ColumnFacts>, string]>([
  ['boolean', { oid: 16 }, 'bool'],
  ['smallint', { oid: 21 }, 'int32'],
  ['integer', { oid: 23 }, 'int32'],
  ['bigint', { oid: 20 }, 'int64'],
  ['oid', { oid: 26 }, 'uint64'],
  ['real', { oid: 700 }, 'float32'],
  ['double precision', { oid: 701 }, 'float64'],
  ['numeric(12,2)', numeric(12, 2), 'decimal(12,2)'],
  ['numeric(38,38)', numeric(38, 38), 'decimal(38,38)'],
  ['numeric(38,0)', numeric(38, 0), 'decimal(38,0)'],
  ['numeric(39,0)', numeric(39, 0), 'string'],
  ['numeric(5,-2)', numeric(5, -2), 'string'],
  ['numeric(3,5)', numeric(3, 5), 'string'],
  ['numeric(1000,1000)', numeric(1000, 1000), 'string'],
  ['numeric', { oid: 1700 }, 'string'],
  ['text', { oid: 25 }, 'string'],
  ['character varying(3)', { oid: 1043, typmod: 7 }, 'string'],
  ['character(3)', { oid: 1042, typmod: 7 }, 'string'],
  ['name', { oid: 19 }, 'string'],
  ['"char"', { oid: 18 }, 'string'],
  ['citext', { oid: 16_500, name: 'citext' }, 'string'],
  ['money', { oid: 790 }, 'string'],
  ['mood, an enum', { oid: 16_501, name: 'mood', type: 'e', category: 'E' }, 'string'],
  ['bytea', { oid: 17 }, 'binary'],
  ['date', { oid: 1082 }, 'date'],
  ['time(3)', { oid: 1083, typmod: 3 }, 'time'],
  ['timestamp', { oid: 1114 }, 'timestamp'],
  ['timestamptz(0)', { oid: 1184, typmod: 0 }, 'timestamptz'],
  ['uuid', { oid: 2950 }, 'uuid'],
  ['json', { oid: 114 }, 'json'],
  ['jsonb', { oid: 3802 }, 'json'],
])('a column of %s is known', (_, facts, kind) => {
  expect(typeOf({ ...COLUMN, ...facts })).toMatchObject({ kind });
});

test('a domain has the kind of its base and keeps its own name', () => {
  const price: ColumnFacts = {
    ...COLUMN,
    oid: 16_600,
    name: 'price',
    type: 'd',
    category: 'N',
    formatted: 'price',
    base: { ...COLUMN, ...numeric(9, 3) },
  };

  expect(typeOf(price)).toEqual({ kind: 'decimal(9,3)', sourceType: 'price', baseOid: 1700, copyAsText: false });
});

test('money and "char" are read as text, since their binary forms say something else', () => {
  expect(typeOf({ ...COLUMN, oid: 790 })).toMatchObject({ copyAsText: true });
  expect(typeOf({ ...COLUMN, oid: 18 })).toMatchObject({ copyAsText: true });
  expect(typeOf(COLUMN)).toMatchObject({ copyAsText: false });
});

test.each<[string, Partial<ColumnFacts>]>([
  ['array', { oid: 1007, name: '_int4', category: 'A', formatted: 'integer[]' }],
  ['range', { oid: 3904, name: 'int4range', type: 'r', category: 'R', formatted: 'int4range' }],
  ['multirange', { oid: 4451, name: 'int4multirange', type: 'm', category: 'R', formatted: 'int4multirange' }],
  ['composite', { oid: 16_700, name: 'pair', type: 'c', category: 'C', formatted: 'pair' }],
  ['type', { oid: 1186, name: 'interval', category: 'T', formatted: 'interval' }],
  ['type', { oid: 1266, name: 'timetz', category: 'D', formatted: 'time with time zone' }],
  ['type', { oid: 869, name: 'inet', category: 'I', formatted: 'inet' }],
  ['type', { oid: 16_701, name: 'hstore', category: 'U', formatted: 'hstore' }],
  ['type', { oid: 16_702, name: 'citext', category: 'U', formatted: 'other.citext' }],
])('a column of an %s that is not supported yet is refused with its name and a remedy', (word, facts) => {
  const column = { ...COLUMN, ...facts };

  expect(typeOf(column)).toEqual({
    unsupported: expect.stringMatching(new RegExp(`^column c: the .*${word} .*is not supported yet$`)),
    remedy: expect.stringContaining('pipeline file'),
  });
  expect(() => fieldFor(column)).toThrow(UrutauError);
  expect(() => fieldFor(column)).toThrow(facts.formatted);
});

test('a field carries kind, source type and NOT NULL as metadata, and only a key column is not nullable', () => {
  const value = fieldFor({ ...COLUMN, oid: 20, formatted: 'bigint', notNull: true });
  const key = fieldFor({ ...COLUMN, oid: 20, formatted: 'bigint', notNull: true, key: true });

  expect(value.nullable).toBe(true);
  expect(key.nullable).toBe(false);
  expect(Object.fromEntries(value.metadata)).toEqual({
    [METADATA.kind]: 'int64',
    [METADATA.sourceType]: 'bigint',
    [METADATA.notNull]: 'true',
  });
});

test('uuid and json fields carry their Arrow extension', () => {
  expect(fieldFor({ ...COLUMN, oid: 2950 }).metadata.get('ARROW:extension:name')).toBe('arrow.uuid');
  expect(fieldFor({ ...COLUMN, oid: 3802 }).metadata.get('ARROW:extension:name')).toBe('arrow.json');
  expect(fieldFor(COLUMN).metadata.get('ARROW:extension:name')).toBeUndefined();
});
