// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { z } from 'zod';
import { pipelineFile } from './schema/pipeline-file.ts';

/** The schema of a pipeline file for editors (JSON Schema 2020-12). Any value may be `${env:…}` or `${file:…}`. */
export function pipelineJsonSchema(): Record<string, unknown> {
  const { $schema, $defs, ...schema } = z.toJSONSchema(pipelineFile, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      const { type, enum: values, const: constant, pattern, description, ...rest } = jsonSchema;
      const takesText = type === 'string' && values === undefined && constant === undefined && pattern === undefined;
      if (takesText || !SCALARS.some((scalar) => scalar === type)) return;
      const own = structuredClone({ type, enum: values, const: constant, pattern, ...rest });
      for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
      Object.assign(jsonSchema, { description, anyOf: [own, { $ref: '#/$defs/interpolation' }] });
    },
  });
  const text = { $schema, title: 'urutau-host pipeline', ...schema, $defs: { ...$defs, interpolation: INTERPOLATION } };
  return JSON.parse(JSON.stringify(text)); // Drops what is undefined.
}

const SCALARS = ['string', 'integer', 'number', 'boolean'] as const;

const INTERPOLATION = {
  type: 'string',
  pattern: '\\$\\{(env|file):',
  description: 'Taken from the environment (${env:NAME}, ${env:NAME:-default}) or from a file (${file:/path}).',
};
