import { expect, test } from 'vitest';
import { configFields } from '../../../../host/cli/config-fields.ts';

test('fields of blocks, lists and maps are named with their types, and secrets and required ones are marked', () => {
  const fields = configFields({
    type: 'object',
    required: ['uri'],
    properties: {
      uri: { type: 'string', secret: true, description: 'Where.' },
      ssl: { $ref: '#/$defs/ssl' },
      tables: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
      params: { type: 'object', additionalProperties: { type: ['string', 'number'] } },
    },
    $defs: { ssl: { type: 'object', properties: { mode: { enum: ['off', 'on'], default: 'off' } } } },
  });

  expect(fields).toEqual([
    { path: 'uri', type: 'string', required: true, secret: true, description: 'Where.' },
    { path: 'ssl', type: 'object', required: false, secret: false },
    { path: 'ssl.mode', type: 'off | on', required: false, secret: false, default: 'off' },
    { path: 'tables', type: 'array', required: false, secret: false },
    { path: 'tables[].name', type: 'string', required: false, secret: false },
    { path: 'params', type: 'object', required: false, secret: false },
    { path: 'params.*', type: 'string | number', required: false, secret: false },
  ]);
});

test('a schema that refers to itself comes to an end', () => {
  const fields = configFields({ properties: { child: { $ref: '#' } } });

  expect(fields.map(({ path }) => path)).toEqual(['child']);
});
