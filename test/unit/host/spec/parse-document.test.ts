import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument } from '../../../../host/spec/parse-document.ts';

const TEXT = `# a comment
source:
  kind: postgres
  empty:
tables:
  - source: a
  - {source: b, target: c}
`;

test('a value has its own place, and a block that of its name', () => {
  const { places } = parseDocument(TEXT);

  expect(places.locate(['source', 'kind'])).toEqual({ line: 3, column: 9 });
  expect(places.locate(['source'])).toEqual({ line: 2, column: 1 });
  expect(places.locate(['tables', 0])).toEqual({ line: 6, column: 5 });
  expect(places.locate(['tables', 1, 'target'])).toEqual({ line: 7, column: 25 });
});

test('an empty field counts as absent and has the place of its name', () => {
  const { places, value } = parseDocument(TEXT);

  expect(value).toMatchObject({ source: { kind: 'postgres', empty: undefined } });
  expect(places.locate(['source', 'empty'])).toEqual({ line: 4, column: 3 });
});

test('a missing field has the place of its nearest present parent', () => {
  const { places } = parseDocument(TEXT);

  expect(places.locate(['tables', 0, 'workers', 'max'])).toEqual({ line: 6, column: 5 });
  expect(places.locate(['nothing'])).toEqual({ line: 2, column: 1 });
});

test('a field of an alias has its place where it is written', () => {
  const { places, value } = parseDocument('a: &x {b: 1}\nc: *x\n');

  expect(value).toEqual({ a: { b: 1 }, c: { b: 1 } });
  expect(places.locate(['c', 'b'])).toEqual({ line: 1, column: 11 });
});

test('a whole number beyond 2^53 keeps its digits', () => {
  expect(parseDocument('[9007199254740991, 9007199254740993]').value).toEqual([9007199254740991, 9007199254740993n]);
});

test('aliases without an end are refused', () => {
  expect(parseDocument('a: &a [*a]').findings.at(-1)?.what).toBe('nested deeper than 64 levels');
});

test('an avalanche of aliases is refused', () => {
  const lines = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);

  const { findings } = parseDocument(['a0: &a0 x', ...lines].join('\n'));

  expect(findings[0]?.what).toBe('more than 100 aliases are used');
});

test('a name that objects have of their own is an ordinary field', () => {
  const { value } = parseDocument('__proto__: {polluted: true}\nconstructor: 1');

  expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor']);
  expect((value as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('any text is read or refused with a place, and never throws', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab:-[]{}&*!|>\'"#%@`,?\n\t  01') }), (text) => {
      const { value, findings, places } = parseDocument(text);

      if (findings.length > 0) expect(places.locate(findings[0]!.path).line).toBeGreaterThan(0);
      else expect(() => JSON.stringify(value)).not.toThrow();
    }),
  );
});

test('JSON is read too, also when tabs indent it', () => {
  expect(parseDocument('{\n\t"a": [\n\t\t{"b": null, "c": "\\u00e9"}\n\t]\n}\n').value).toEqual({ a: [{ c: 'é' }] });
});
