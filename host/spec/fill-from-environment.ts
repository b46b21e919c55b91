import { replaced, valueAt } from './path.ts';
import { FIELD_OWNERS } from './rules/field-owners.ts';

const SOURCE_URI = 'URUTAU_SOURCE_URI';
const SINK_VARIABLES = {
  uri: 'URUTAU_SINK_URI',
  clientId: 'URUTAU_SINK_CLIENT_ID',
  clientSecret: 'URUTAU_SINK_CLIENT_SECRET',
  scope: 'URUTAU_SINK_SCOPE',
} as const;

/** Fills fields that are absent or empty and that the kind has. A connection written in parts is not empty. */
export function fillFromEnvironment(value: unknown, env: Readonly<Record<string, string | undefined>>): unknown {
  const kind = valueAt(value, ['source', 'kind']);
  const inParts = valueAt(value, ['source', 'postgres', 'host']) !== undefined;
  let filled = value;
  if (owns('source', 'uri', kind) && !inParts) filled = fill(filled, ['source', 'uri'], env[SOURCE_URI]);
  for (const [field, variable] of Object.entries(SINK_VARIABLES)) {
    if (owns('sink', field, valueAt(value, ['sink', 'type']))) filled = fill(filled, ['sink', field], env[variable]);
  }
  return filled;
}

function owns(side: 'source' | 'sink', field: string, kind: unknown): boolean {
  const owners: readonly unknown[] = FIELD_OWNERS[side][field] ?? [];
  return owners.includes(kind);
}

function fill(value: unknown, path: readonly string[], text: string | undefined): unknown {
  const present = valueAt(value, path);
  const empty = present === undefined || present === '';
  return empty && text !== undefined && text !== '' ? replaced(value, path, text) : value;
}
