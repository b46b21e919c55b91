import { z } from 'zod';
import { type ConnectionOptions, SSL_MODES } from '../connection.ts';

const text = z.string().min(1);

/** `250ms`, `10s`, `5m`, `1h` → milliseconds. */
const duration = z
  .string()
  .regex(/^[1-9]\d*(ms|s|m|h)$/, 'expected a duration such as 500ms, 10s or 5m')
  .transform((value) => Number.parseInt(value, 10) * UNIT_MS[/[a-z]+$/.exec(value)![0] as keyof typeof UNIT_MS]);

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

const ssl = z.strictObject({
  mode: z.enum(SSL_MODES),
  ca: text.optional(),
  cert: text.optional(),
  key: text.optional(),
});

const publication = z.strictObject({
  /** Default: the slot's name and `_pub`. */
  name: text.max(63).optional(),
  create: z.union([z.literal(true), z.literal('existing')]).default(true),
});

const postgresBlock = z.strictObject({
  host: text.optional(),
  port: z.int().min(1).max(65_535).optional(),
  database: text.optional(),
  username: text.optional(),
  password: z.string().optional(),
  params: z.record(z.string(), z.string()).optional(),
  ssl: ssl.optional(),
  maxThreads: z.int().min(1).max(32).default(4),
  retryCount: z.int().min(0).default(3),
  publication: publication.optional(),
  heartbeat: duration.default(10_000),
  // The only values that are carried out; they are allowed so that a file may say them.
  replicaIdentity: z.literal('keep').optional(),
  discover: z.literal(false).optional(),
  cdc: z.strictObject({ plugin: z.literal('pgoutput').optional() }).optional(),
});

/** The fields of the block that say what a uri says. */
const ADDRESS = ['host', 'port', 'database', 'username', 'password', 'params', 'ssl'] as const;

/** The source's part of the pipeline file. config.schema.json says the same for the host. */
export const sourceConfig = z
  .strictObject({
    uri: z
      .string()
      .regex(/^postgres(ql)?:\/\//, 'expected postgresql://user:password@host:port/database')
      .optional(),
    slotName: z
      .string()
      .max(63)
      .regex(/^[a-z_][a-z0-9_]*$/, 'expected lower-case letters, digits and _'),
    postgres: postgresBlock.optional(),
  })
  .superRefine(({ uri, postgres = {} as z.infer<typeof postgresBlock> }, context) => {
    const given = ADDRESS.filter((field) => postgres[field] !== undefined);
    const missing = (['host', 'database', 'username'] as const).filter((field) => postgres[field] === undefined);
    if (uri !== undefined && given.length > 0) {
      context.addIssue({ code: 'custom', message: `expected either uri or postgres.${given[0]}, not both` });
    }
    if (uri === undefined && missing.length > 0) {
      context.addIssue({ code: 'custom', message: `expected uri, or postgres.${missing.join(' and postgres.')}` });
    }
  });
export type SourceConfig = z.infer<typeof sourceConfig>;

export function connectionOf({ uri, postgres }: SourceConfig): ConnectionOptions {
  return uri === undefined ? { postgres: postgres as NonNullable<ConnectionOptions['postgres']> } : { uri };
}

/** With every default filled in, also where a uri stands in the block's place. */
export function settingsOf({ slotName, postgres }: SourceConfig): SourceSettings {
  return {
    slotName,
    publicationName: postgres?.publication?.name ?? `${slotName}_pub`,
    publicationManaged: postgres?.publication?.create !== 'existing',
    maxThreads: postgres?.maxThreads ?? 4,
    retryCount: postgres?.retryCount ?? 3,
    heartbeatMs: postgres?.heartbeat ?? 10_000,
  };
}

export interface SourceSettings {
  slotName: string;
  publicationName: string;
  /** The driver makes the publication and keeps it to the assigned tables. */
  publicationManaged: boolean;
  maxThreads: number;
  retryCount: number;
  heartbeatMs: number;
}
