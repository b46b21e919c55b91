/** Each type with its edges, as SQL. */
export const EDGES: Record<string, string[]> = {
  boolean: ['true', 'false'],
  smallint: ['32767', '-32768', '0'],
  integer: ['2147483647', '-2147483648', '-1'],
  bigint: ['9223372036854775807', '-9223372036854775808', '9007199254740993', '-999999999999999'],
  oid: ['0', '2147483648', '4294967295'],
  real: ["'3.4028235e38'", "'1e-45'", "'-0'", '0.1', '16777217', "'NaN'", "'Infinity'", "'-Infinity'"],
  'double precision': [
    "'1.7976931348623157e308'",
    "'5e-324'",
    "'-0'",
    '0.1',
    '1e22',
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
  ],
  'numeric(12,2)': ['9999999999.99', '-9999999999.99', '0', '0.01', '-0.05', '1200'],
  'numeric(38,0)': ['9'.repeat(38), `-${'9'.repeat(38)}`, '10000', '1'],
  'numeric(38,38)': [`0.${'9'.repeat(38)}`, `-0.${'0'.repeat(37)}1`],
  'numeric(39,2)': ['9'.repeat(37), "'NaN'", '0.10'],
  'numeric(5,-2)': ['9999900', '-49', '151'],
  'numeric(3,5)': ['0.00999', '0.00001'],
  numeric: ['0', '0.000', '-1.500', '1e300', '1e-300', '10000', '0.0001', "'NaN'", "'Infinity'", "'-Infinity'"],
  text: ["''", "'é \u{1f980}'", "repeat('x', 100000)"],
  'varchar(5)': ["'abc'"],
  'character(5)': ["'ab'", "''"],
  name: ["'pg_class'"],
  citext: ["'MiXed'"],
  '"char"': ["'a'", "''"],
  mood: ["'sad'", `'o''k "é"'`],
  money: ['1234.5', "'-92233720368547758.08'"],
  bytea: ["''", "'\\x00ff'", "decode(repeat('ab', 50000), 'hex')"],
  date: ["'4713-01-01 BC'", "'1991-02-10 BC'", "'0001-01-01'", "'2024-02-29'", "'10000-01-01'", "'5874897-12-31'"],
  time: ["'00:00'", "'23:59:59.999999'", "'12:00:00.1'"],
  'time(3)': ["'12:00:00.1234'"],
  timestamp: ["'4713-01-01 BC'", "'0001-01-01'", "'1969-12-31 23:59:59.999999'", "'294247-01-10 04:00:54.775807'"],
  timestamptz: [
    ...["'4713-01-02 BC UTC'", "'0001-01-01 UTC'", "'1899-12-31 18:00:00 UTC'", "'2024-03-31 01:30:00.120 UTC'"],
    ...["'9999-12-31 23:59:59.999999 UTC'", "'294247-01-10 04:00:54.775807 UTC'"],
  ],
  uuid: ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-4fff-bfff-ffffffffffff'"],
  json: [`'{"a" : 1,  "a": 2}'`, "'null'"],
  jsonb: [`'{"b": 1.00, "a": "é"}'`, "'[]'", "'null'"],
  price: ['12.345', '-0.001'],
  fair_price: ['1.000'],
};

/** What the types need. */
export const CREATE_TYPES = `
  create extension citext;
  create type mood as enum ('sad', 'o''k "é"');
  create domain price as numeric(9,3);
  create domain fair_price as price check (value > 0)`;
