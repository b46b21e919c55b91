import type { TableListing } from '@urutau/contract';
import { stringify } from 'yaml';

export interface FirstPipelineFile {
  /** Name of the pipeline, and of its replication slot. */
  readonly name: string;
  readonly sink: 'postgres' | 'stdout';
  readonly tables: readonly TableListing[];
  /** Of the JSON Schema, as an editor finds it from the file. */
  readonly schema: string;
}

/** A pipeline file to begin with, commented. Tables that cannot be copied as they are stand in it with the reason. */
export function firstPipelineFile({ name, sink, tables, schema }: FirstPipelineFile): string {
  const copied = tables.filter(hasKey);
  const others = tables.filter((table) => !hasKey(table));
  return `# yaml-language-server: $schema=${schema}
# \`urutau-host validate -f FILE --connect\` checks this file and both sides; \`urutau-host run -f FILE\` carries it out.
pipeline: ${name}                  # owns the slot, the checkpoints and the state folder

source:
  kind: postgres
  uri: \${env:URUTAU_SOURCE_URI}    # postgres://user:password@host:5432/database
  slotName: ${name}                # the replication slot; it is made at the first run
  # snapshotMode: none            # follow changes without copying what is there
  # onTruncate: apply             # apply, ignore, or fail (the default: the table pauses)

${SINKS[sink]}
tables:
${copied.map(tableBlock).join('')}${others.length === 0 ? '' : `${NO_KEY}${others.map(commentedBlock).join('')}`}`;
}

const SINKS = {
  postgres: `sink:
  type: postgres
  uri: \${env:URUTAU_SINK_URI}      # postgres://user:password@host:5432/database
  namespace: public               # the schema of targets that are written without one
  # flush: { rows: 100000, bytes: 32Mi, interval: 5s }   # a commit at whichever comes first
`,
  stdout: `sink:
  type: stdout                    # one JSON object a line; into another database:
  # type: postgres
  # uri: \${env:URUTAU_SINK_URI}    # postgres://user:password@host:5432/database
`,
};

const NO_KEY = `
  # These have no primary key, so that an update could not find its row. Give each one a key, or run
  # ALTER TABLE ... REPLICA IDENTITY FULL and keep every change as a row (writeMode: append).
`;

function hasKey({ primaryKey }: TableListing): boolean {
  return primaryKey !== undefined && primaryKey.length > 0;
}

function tableBlock(table: TableListing): string {
  const facts = [`key: ${table.primaryKey!.map(oneLine).join(', ')}`, ...rowsText(table)].join('; ');
  return `  - source: ${scalar(table.name)}   # ${facts}\n    target: ${scalar(targetOf(table.name))}\n`;
}

function commentedBlock(table: TableListing): string {
  const facts = ['no key', ...rowsText(table)].join('; ');
  const lines = [
    `- source: ${scalar(table.name)}   # ${facts}`,
    `  target: ${scalar(targetOf(table.name))}`,
    '  writeMode: append',
  ];
  return lines.map((line) => `  # ${line}\n`).join('');
}

function rowsText({ estimatedRows }: TableListing): string[] {
  return estimatedRows === undefined ? [] : [`about ${estimatedRows.toLocaleString('en-US')} rows`];
}

/** Without the schema that everybody means; others stay, so that names do not meet, and so does one before a dotted name. */
function targetOf(name: string): string {
  return /^public\.[^.]+$/.test(name) ? name.slice('public.'.length) : name;
}

/** Quoted unless it surely needs no quotes: a JSON text is YAML too, always of one line. */
function scalar(text: string): string {
  if (/^[A-Za-z_][\w.]*$/.test(text)) return stringify(text).trimEnd();
  // `${` would be read as a reference; in a replacement `$$` stands for one `$`.
  return JSON.stringify(text.replaceAll('${', '$$$${'));
}

/** A comment ends with its line, and a name may hold anything. */
function oneLine(text: string): string {
  return /^[\w$-]+$/.test(text) ? text : JSON.stringify(text);
}
