import { status } from '@grpc/grpc-js';
import { ERRORS, type ErrorCode, UrutauError } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NotServed, toServiceError } from '../../../../../sdk/typescript/flight/service-error.ts';

test.each(Object.keys(ERRORS) as ErrorCode[])('%s travels with its status and is read back whole', (code) => {
  const error = new UrutauError(code, 'what came, where', {
    table: 'orders',
    column: 'größe',
    row: 3,
    key: '{"id":1}',
  });

  const sent = toServiceError(error);

  expect(sent).toMatchObject({ code: status[ERRORS[code].grpc], details: 'what came, where' });
  expect(UrutauError.fromWire(wireOf(sent), sent.details)).toEqual(error);
});

test('any other error is internal, with its text', () => {
  const sent = toServiceError(new TypeError('x is not a function'));

  expect(sent).toMatchObject({ code: status.INTERNAL, details: 'x is not a function' });
  expect(JSON.parse(wireOf(sent))).toMatchObject({ code: 'internal', retry: 'restart' });
});

test('a call that the role does not serve is UNIMPLEMENTED', () => {
  expect(toServiceError(new NotServed('protocol-violation', 'DoPut is not served')).code).toBe(status.UNIMPLEMENTED);
});

test('the trailers stay below 64 KiB and in ASCII, whatever the error holds', () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string().map((s) => s.repeat(1_000)),
    fc.constant('語'.repeat(5_000)),
    fc.constant(`a${'🍵'.repeat(5_000)}`),
  );
  const failure = fc.record({ problem: text, remedy: text });
  fc.assert(
    fc.property(text, text, text, fc.array(failure, { maxLength: 60 }), (message, remedy, key, failures) => {
      const sent = toServiceError(
        new UrutauError('precondition-failed', message, { remedy, key, stored: key, failures }),
      );
      const wire = wireOf(sent);

      expect(wire.length + encodeURI(sent.details).length).toBeLessThan(60 * 1024);
      expect(wire).toMatch(/^[\x20-\x7e]*$/);
      expect(UrutauError.fromWire(wire, message)?.code).toBe('precondition-failed');
    }),
    { numRuns: 60 },
  );
});

test('four hundred refused rows beside a long message are told whole', () => {
  const more = Array.from({ length: 400 }, (_, n) => [100_000 + n, 60_000 + n] as const);
  const error = new UrutauError('row-refused', 'a check constraint fails', {
    key: 'k'.repeat(200),
    seq: 1,
    row: 2,
    more,
  });

  expect(UrutauError.fromWire(wireOf(toServiceError(error)), error.message)!.context).toEqual(error.context);
});

test('a list of failures that is too long is cut, and says how many are missing', () => {
  const failures = Array.from({ length: 1_000 }, (_, n) => ({
    problem: `table t${n} has no key`,
    remedy: 'Add a key.',
    table: `t${n}`,
  }));

  const { context } = UrutauError.fromWire(
    wireOf(toServiceError(new UrutauError('precondition-failed', 'several', { failures }))),
    '',
  )!;
  const kept = context.failures!;

  expect(kept.length).toBeGreaterThan(50);
  expect(kept.slice(0, -1)).toEqual(failures.slice(0, kept.length - 1));
  expect(kept.at(-1)!.problem).toBe(`${1_000 - (kept.length - 1)} more of the kind`);
});

function wireOf(sent: ReturnType<typeof toServiceError>): string {
  return String(sent.metadata.get('urutau-error')[0]);
}
