import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROTOCOL_VERSION, UrutauError } from '@urutau/contract';
import { isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { closest } from '../spec/did-you-mean.ts';

const SEMVER = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/;

/** plugin.yaml. Keys that are not here belong to others and are left alone, unless they look like a slip of one that is. */
export const manifestSchema = z.looseObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9@][A-Za-z0-9@/._-]*$/, 'must be letters, digits, dots, dashes, underscores and slashes')
    .describe('What the driver is called in pipelines, logs and lists.'),
  version: z
    .string()
    .regex(SEMVER, 'must be a semantic version such as 1.2.0')
    .describe('Semantic version of the driver.'),
  roles: z
    .array(z.enum(['source', 'sink']))
    .min(1)
    .describe('What the command can be started as.'),
  command: z
    .array(z.string().min(1))
    .min(1)
    .describe(
      'Program and arguments, run with the folder as working directory. `node` is the Node that runs the host.',
    ),
  protocolVersions: z.array(z.int().min(1)).min(1).describe('Versions of the protocol that the driver speaks.'),
  capabilities: z
    .looseObject({
      idempotentWrite: z
        .boolean()
        .default(true)
        .describe('Sinks: whether a row may be written twice. False turns restarting by itself off.'),
    })
    .default({ idempotentWrite: true }),
  env: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
        .regex(/^(?!URUTAU_)/, 'must not begin with URUTAU_: the host sets those itself'),
    )
    .default([])
    .describe("Names of the host's environment variables that the driver may see."),
  stdout: z.literal('host').optional().describe("Sinks: pass the host's own stdout as file descriptor 3."),
  reader: z
    .string()
    .min(1)
    .optional()
    .describe('Sinks: the folder, beside this one, of a source that reads the targets back.'),
  fixture: z.array(z.string().min(1)).min(1).optional().describe('A command for the conformance kit.'),
});

export type Manifest = z.output<typeof manifestSchema>;

/** A JSON Schema, as it was read. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A driver's folder. */
export interface DriverPackage {
  /** Absolute path. */
  readonly directory: string;
  readonly manifest: Manifest;
  /** config.schema.json, where there is one. */
  readonly configSchema?: JsonSchema;
}

/** Reads a driver's folder. Throws `config-invalid` with every problem of its manifest at once, each with its line. */
export async function readDriverPackage(directory: string): Promise<DriverPackage> {
  const manifestFile = join(directory, 'plugin.yaml');
  const text = await readFile(manifestFile, 'utf8').catch((cause: unknown) => {
    throw new UrutauError(
      'config-invalid',
      `${directory} is not a driver's folder: its plugin.yaml cannot be read (${(cause as Error).message})`,
      {
        cause,
        remedy: 'Name the folder that holds the plugin.yaml of the role that is wanted.',
      },
    );
  });
  const manifest = parseManifest(text, manifestFile);
  const configSchema = await readConfigSchema(join(directory, 'config.schema.json'));
  return { directory, manifest, ...(configSchema === null ? {} : { configSchema }) };
}

/** `file` is only for the messages. */
export function parseManifest(text: string, file: string): Manifest {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number, path: string, problem: string) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}: ${path === '' ? '' : `${path}: `}${problem}`;
  };
  if (document.errors.length > 0) throw invalid(document.errors.map(({ pos, message }) => at(pos[0], '', message)));

  const value: unknown = document.toJS();
  const parsed = manifestSchema.safeParse(value);
  const offsetOf = (path: readonly PropertyKey[]): number => {
    const node = path.length === 0 ? document.contents : document.getIn(path as (string | number)[], true);
    if (isNode(node) && node.range) return node.range[0];
    return path.length === 0 ? 0 : offsetOf(path.slice(0, -1));
  };
  const problems = (parsed.error?.issues ?? []).map(({ path, message }) => at(offsetOf(path), pathText(path), message));
  for (const key of Object.keys(isObject(value) ? value : {})) {
    const meant = key in manifestSchema.shape ? undefined : closest(key, Object.keys(manifestSchema.shape));
    if (meant !== undefined) problems.push(at(offsetOf([key]), key, `unknown key; did you mean ${meant}?`));
  }
  if (!parsed.success) throw invalid(problems);

  const { roles, stdout, reader, protocolVersions } = parsed.data;
  if (stdout === 'host' && !roles.includes('sink'))
    problems.push(at(offsetOf(['stdout']), 'stdout', "only a sink writes to the host's stdout"));
  if (reader !== undefined && !roles.includes('sink'))
    problems.push(at(offsetOf(['reader']), 'reader', 'only the targets of a sink are read back'));
  if (!protocolVersions.some((version) => version <= PROTOCOL_VERSION)) {
    const spoken = `speaks protocol version ${protocolVersions.join(', ')}; this host speaks ${PROTOCOL_VERSION}`;
    problems.push(
      at(offsetOf(['protocolVersions']), 'protocolVersions', `${spoken}: install an older driver or a newer host`),
    );
  }
  if (problems.length > 0) throw invalid(problems);
  return parsed.data;
}

function invalid(problems: readonly string[]): UrutauError {
  return new UrutauError('config-invalid', problems.join('\n'), { remedy: "Correct the driver's plugin.yaml." });
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`))
    .join('');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function readConfigSchema(file: string): Promise<JsonSchema | null> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw cause;
  }
  let problem = 'an object was expected';
  try {
    const schema: unknown = JSON.parse(text);
    if (isObject(schema)) return schema as JsonSchema;
  } catch (cause) {
    problem = (cause as Error).message;
  }
  throw new UrutauError('config-invalid', `${file} is not a JSON Schema: ${problem}`, {
    remedy: "Correct the driver's config.schema.json.",
  });
}
