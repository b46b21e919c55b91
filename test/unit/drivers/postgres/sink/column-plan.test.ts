import { arrowTypeOf, type Kind, METADATA } from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { expect, test } from 'vitest';
import { columnPlan, typeForKind } from '../../../../../drivers/postgres/sink/column-plan.ts';

/** kind → the types that hold it, as `type` of the catalog or `type|formatted`, and some that do not. */
const HOLDS: Record<string, { yes: string[]; no: string[] }> = {
  bool: { yes: ['bool'], no: ['int4', 'text'] },
  int32: {
    yes: ['int4', 'int8', 'numeric', 'numeric|numeric(10,0)'],
    no: ['int2', 'numeric|numeric(9,0)', 'float8', 'text'],
  },
  int64: { yes: ['int8', 'numeric', 'numeric|numeric(21,2)'], no: ['int4', 'numeric|numeric(20,2)', 'float8'] },
  uint64: { yes: ['numeric', 'numeric|numeric(20,0)'], no: ['int8', 'oid', 'numeric|numeric(19,0)'] },
  float32: { yes: ['float4', 'float8'], no: ['numeric', 'int4'] },
  float64: { yes: ['float8'], no: ['float4', 'numeric'] },
  'decimal(12,2)': {
    yes: ['numeric', 'numeric|numeric(12,2)', 'numeric|numeric(14,4)'],
    no: ['numeric|numeric(12,4)', 'numeric|numeric(12,1)', 'float8'],
  },
  string: {
    yes: ['text', 'varchar', 'varchar|character varying(20)', 'citext', 'enum|mood'],
    no: ['bpchar|character(4)', 'name', 'jsonb', 'int4', 'other|inet'],
  },
  json: { yes: ['jsonb', 'json', 'text'], no: ['bytea', 'varchar|character varying(20)'] },
  binary: { yes: ['bytea'], no: ['text', 'uuid'] },
  'fixed(16)': { yes: ['bytea'], no: ['uuid'] },
  date: { yes: ['date'], no: ['timestamp', 'text'] },
  time: { yes: ['time|time without time zone'], no: ['time|time(3) without time zone', 'timetz'] },
  timestamp: {
    yes: ['timestamp|timestamp without time zone'],
    no: ['timestamptz', 'timestamp|timestamp(0) without time zone'],
  },
  timestamptz: { yes: ['timestamptz|timestamp with time zone'], no: ['timestamp', 'date'] },
  uuid: { yes: ['uuid'], no: ['text', 'bytea'] },
};

test.each(Object.keys(HOLDS))('kind %s goes into the types that hold all of it, and into no other', (kind) => {
  const takes = (text: string) => columnPlan(fieldOf(kind), targetOf(text)) !== null;
  const { yes, no } = HOLDS[kind]!;

  expect([...yes, ...no].filter(takes)).toEqual(yes);
});

test.each(Object.keys(HOLDS))('the type that is made for kind %s is one that holds it', (kind) => {
  const made = typeForKind(fieldOf(kind))!;
  const names: Record<string, string> = {
    boolean: 'bool',
    integer: 'int4',
    bigint: 'int8',
    real: 'float4',
    'double precision': 'float8',
    'time without time zone': 'time',
    'timestamp without time zone': 'timestamp',
    'timestamp with time zone': 'timestamptz',
  };
  const type = names[made] ?? made.replace(/\(.*/, '');

  expect(columnPlan(fieldOf(kind), { type, formatted: made })).not.toBeNull();
});

test('the source’s own type opens what the kind alone would not, and only the very same type', () => {
  const takes = (kind: string, sourceType: string, target: string) =>
    columnPlan(fieldOf(kind, sourceType), targetOf(target));

  expect(takes('int32', 'smallint', 'int2|smallint')).toMatchObject({ form: 'int2', cast: null });
  expect(takes('uint64', 'oid', 'oid')).toMatchObject({ form: 'oid' });
  expect(takes('string', 'character(4)', 'bpchar|character(4)')).toMatchObject({ form: 'text', cast: null });
  expect(takes('string', 'inet', 'inet|inet')).toMatchObject({ form: 'text', stageType: 'text', cast: 'inet' });
  expect(takes('string', 'numeric(60,2)', 'numeric|numeric(60,1)')).toBeNull();
  // The user has cast these to text; reading them back would undo it.
  expect(takes('string', 'integer', 'int4|integer')).toBeNull();
  expect(takes('string', 'timestamp with time zone', 'timestamptz|timestamp with time zone')).toBeNull();
});

function fieldOf(kind: string, sourceType?: string): Field {
  const metadata = new Map(sourceType === undefined ? [] : [[METADATA.sourceType as string, sourceType]]);
  if (kind === 'uuid' || kind === 'json') metadata.set('ARROW:extension:name', `arrow.${kind}`);
  return new Field('c', arrowTypeOf(kind as Kind), true, metadata);
}

function targetOf(text: string): { type: string; formatted: string } {
  const [type = '', formatted = type === 'varchar' ? 'character varying' : type] = text.split('|');
  return { type, formatted };
}
