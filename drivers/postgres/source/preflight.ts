import { type Failure, UrutauError } from '@urutau/sdk';
import { quoteIdent, readableName } from '../connection.ts';
import { compareOffsets, type Offset } from '../offset.ts';
import { typeOf } from '../types.ts';
import type { CatalogTable, Query } from './catalog.ts';
import type { Publication } from './publication.ts';
import { PLUGIN, type Slot } from './slot.ts';

/** What the server says of itself and of the user. */
export interface ServerFacts {
  systemIdentifier: string;
  database: string;
  user: string;
  versionNumber: number;
  walLevel: string;
  inRecovery: boolean;
  mayReplicate: boolean;
  mayCreate: boolean;
  slotsFree: number;
  sendersFree: number;
}

export async function loadServerFacts(query: Query): Promise<ServerFacts> {
  const [row] = await query(`
    SELECT json_build_object(
      'systemIdentifier', (SELECT system_identifier::text FROM pg_control_system()),
      'database', current_database(), 'user', current_user,
      'versionNumber', current_setting('server_version_num')::int,
      'walLevel', current_setting('wal_level'),
      'inRecovery', pg_is_in_recovery(),
      'mayReplicate', (SELECT r.rolreplication OR r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'MEMBER')),
      'mayCreate', has_database_privilege(current_database(), 'CREATE'),
      'slotsFree', current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
      'sendersFree', current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication))`);
  return JSON.parse(row![0]!);
}

/** Everything that `assign` wants to find in order. */
export interface PreflightInput {
  server: ServerFacts;
  slotName: string;
  slot: Slot | null;
  publicationName: string;
  /** Whether the configuration lets this driver make the publication. */
  publicationManaged: boolean;
  publication: Publication | null;
  tables: readonly WantedTable[];
  /** Walsenders of this very process. */
  ownPids: ReadonlySet<number>;
}

export interface WantedTable {
  table: string;
  from: Offset | null;
  /** Only its claim on the log is asked for: its rows are not read. */
  hold: boolean;
  /** Null when there is no such table, or none that the user may see. */
  catalog: CatalogTable | null;
  /** Of a partitioned table; empty for others. */
  leaves: readonly LeafFacts[];
}

export interface LeafFacts {
  table: string;
  kind: string;
  persistence: string;
  replicaIdentity: string;
  canSelect: boolean;
  hidesRows: boolean;
}

/** Pure: everything that is wrong, at once. */
export function preflight(input: PreflightInput): Failure[] {
  return [
    ...serverFailures(input),
    ...slotFailures(input),
    ...publicationFailures(input),
    ...input.tables.flatMap((table) => tableFailures(table, input)),
  ];
}

/** The error that names all of them; `position-lost` when only new snapshots can mend them. */
export function preflightError(failures: readonly Failure[]): UrutauError {
  const lost = failures.every(({ code }) => code === 'position-lost');
  const [first] = failures;
  return new UrutauError(
    lost ? 'position-lost' : 'precondition-failed',
    failures.map(({ problem }) => problem).join('; '),
    {
      failures,
      ...(failures.length === 1 ? { table: first!.table, remedy: first!.remedy } : {}),
    },
  );
}

const VERSION_MIN = 140_000;

function serverFailures({ server, slot, ownPids }: PreflightInput): Failure[] {
  const failures: Failure[] = [];
  if (server.versionNumber < VERSION_MIN) {
    failures.push(
      failure(`PostgreSQL ${Math.floor(server.versionNumber / 10_000)} is too old`, 'Use PostgreSQL 14 or newer.'),
    );
  }
  if (server.walLevel !== 'logical') {
    failures.push(
      failure(
        `wal_level is ${server.walLevel}`,
        "Run ALTER SYSTEM SET wal_level = 'logical' and restart the server (managed services have a setting for it).",
      ),
    );
  }
  if (server.inRecovery) {
    failures.push(failure('the server is a standby', 'Connect to the primary.'));
  }
  if (!server.mayReplicate) {
    failures.push(
      failure(
        `user ${server.user} may not replicate`,
        `Run ALTER ROLE ${quoteIdent(server.user)} REPLICATION as a superuser.`,
      ),
    );
  }
  if (slot === null && server.slotsFree < 1) {
    failures.push(
      failure('all replication slots are taken', 'Raise max_replication_slots, or drop a slot that nobody needs.'),
    );
  }
  if (server.sendersFree + ownPids.size < 1) {
    failures.push(failure('all walsenders are taken', 'Raise max_wal_senders, or end a replication connection.'));
  }
  return failures;
}

function slotFailures({ slot, slotName, server, ownPids, tables }: PreflightInput): Failure[] {
  if (slot === null) return [];
  const other = 'Give this pipeline a slotName of its own, or drop the slot if nobody needs it.';
  const failures: Failure[] = [];
  if (slot.type !== 'logical' || slot.plugin !== PLUGIN) {
    failures.push(failure(`replication slot ${slotName} is of plugin ${slot.plugin ?? 'none'}, not ${PLUGIN}`, other));
  } else if (slot.database !== server.database) {
    failures.push(
      failure(`replication slot ${slotName} belongs to database ${slot.database}, not ${server.database}`, other),
    );
  } else if (slot.walStatus === 'lost') {
    const remedy = `Run SELECT pg_drop_replication_slot('${slotName}'), raise max_slot_wal_keep_size, then resync the tables.`;
    failures.push(
      failure(`replication slot ${slotName} was invalidated: the server has removed log that it needs`, remedy),
    );
    failures.push(
      ...tables.filter(({ from }) => from).map(({ table }) => lost(table, `the log after its position is gone`)),
    );
  }
  if (isInUse(slot, ownPids)) {
    const remedy = 'Stop the other host or tool that reads this slot, or give this pipeline a slotName of its own.';
    failures.push(
      failure(`replication slot ${slotName} is in use by another process (server process ${slot.activePid})`, remedy),
    );
  }
  return failures;
}

function isInUse(slot: PreflightInput['slot'], ownPids: PreflightInput['ownPids']): boolean {
  return slot !== null && slot.activePid !== null && !ownPids.has(slot.activePid);
}

function publicationFailures(input: PreflightInput): Failure[] {
  const { publication, publicationName: name, publicationManaged, server, tables } = input;
  if (publication === null) {
    if (!publicationManaged) {
      const names = tables.map(({ table }) => readableName(table)).join(', ');
      const remedy = `Run CREATE PUBLICATION ${quoteIdent(name)} FOR TABLE ${names} WITH (publish_via_partition_root = true), or set publication.create to true.`;
      return [failure(`publication ${name} does not exist`, remedy)];
    }
    const remedy = `Run GRANT CREATE ON DATABASE ${quoteIdent(server.database)} TO ${quoteIdent(server.user)}, or make the publication yourself and set publication.create to existing.`;
    return server.mayCreate ? [] : [failure(`user ${server.user} may not create publication ${name}`, remedy)];
  }
  const failures: Failure[] = [];
  if (publication.missingOperations.length > 0) {
    const remedy = `Run ALTER PUBLICATION ${quoteIdent(name)} SET (publish = 'insert, update, delete, truncate').`;
    failures.push(failure(`publication ${name} leaves out ${publication.missingOperations.join(', ')}`, remedy));
  }
  if (publication.generatedColumns) {
    const remedy = `Run ALTER PUBLICATION ${quoteIdent(name)} SET (publish_generated_columns = none).`;
    failures.push(failure(`publication ${name} publishes generated columns`, remedy));
  }
  if (!publication.viaRoot && tables.some(({ catalog }) => catalog?.kind === 'p')) {
    const remedy = `Run ALTER PUBLICATION ${quoteIdent(name)} SET (publish_via_partition_root = true).`;
    failures.push(failure(`publication ${name} publishes partitions under their own names`, remedy));
  }
  return failures;
}

function tableFailures(wanted: WantedTable, input: PreflightInput): Failure[] {
  const { table, catalog } = wanted;
  if (!table.includes('.')) {
    return [
      failure(`table ${table} is named without its schema`, `Name it as schema.table, such as public.${table}.`, table),
    ];
  }
  if (catalog === null) {
    const remedy = `Check the name (schema.table, with upper and lower case as in the database), and that user ${input.server.user} has USAGE on the schema.`;
    return [failure(`table ${table} does not exist`, remedy, table), ...positionFailures(wanted, input)];
  }
  return [
    ...storageFailures(catalog),
    ...(wanted.hold ? [] : readFailures(wanted.leaves, catalog, input)),
    ...publishedFailures(catalog, input),
    ...identityFailures(catalog),
    ...wanted.leaves.flatMap((leaf) => leafFailures(leaf, catalog)),
    ...columnFailures(catalog),
    ...positionFailures(wanted, input),
  ];
}

function storageFailures({ table, kind, partition, persistence }: CatalogTable): Failure[] {
  const failures: Failure[] = [];
  if (kind !== 'r' && kind !== 'p') {
    failures.push(
      failure(`${table} is ${KINDS[kind] ?? 'no table'}`, 'Name an ordinary or a partitioned table.', table),
    );
  } else if (persistence !== 'p') {
    failures.push(failure(`${table} is not in the log`, `Run ALTER TABLE ${readableName(table)} SET LOGGED.`, table));
  } else if (partition) {
    failures.push(
      failure(
        `${table} is a partition`,
        'Name the partitioned table; it brings the changes of all its partitions.',
        table,
      ),
    );
  }
  return failures;
}

function readFailures(
  leaves: readonly LeafFacts[],
  { table, canSelect, hidesRows }: CatalogTable,
  { server }: PreflightInput,
): Failure[] {
  const failures: Failure[] = [];
  const user = quoteIdent(server.user);
  if (!canSelect) {
    const remedy = `Run GRANT SELECT ON ${readableName(table)} TO ${user}, with USAGE on its schema.`;
    failures.push(failure(`user ${server.user} may not read ${table}`, remedy, table));
  }
  if (hidesRows) failures.push(hidden(table, table, server));
  for (const leaf of leaves) {
    if (leaf.hidesRows) failures.push(hidden(`partition ${leaf.table}`, table, server));
    if (leaf.canSelect) continue;
    const remedy = `Run GRANT SELECT ON ${readableName(leaf.table)} TO ${user}.`;
    failures.push(failure(`user ${server.user} may not read partition ${leaf.table}`, remedy, table));
  }
  return failures;
}

function hidden(relation: string, table: string, { user }: ServerFacts): Failure {
  const problem = `row-level security may hide rows of ${relation} from user ${user}`;
  return failure(
    problem,
    `Run ALTER ROLE ${quoteIdent(user)} BYPASSRLS as a superuser, or connect as the table's owner.`,
    table,
  );
}

const KINDS: Record<string, string> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
  S: 'a sequence',
  i: 'an index',
};

function publishedFailures({ table, owns }: CatalogTable, input: PreflightInput): Failure[] {
  const { publication, publicationName: name, server } = input;
  const published = publication?.tables.find((entry) => entry.table === table);
  if (published?.partial) {
    const remedy = `Publish the whole table: run ALTER PUBLICATION ${quoteIdent(name)} SET TABLE … with neither a column list nor a row filter for it.`;
    return [failure(`publication ${name} filters rows or columns of ${table}`, remedy, table)];
  }
  if (publication && !publication.ours) {
    const remedy = `Run ALTER PUBLICATION ${quoteIdent(name)} ADD TABLE ${readableName(table)} as its owner.`;
    return published ? [] : [failure(`publication ${name} lacks ${table}`, remedy, table)];
  }
  const remedy = `Let its owner publish it and set publication.create to existing, or run GRANT of the owner's role to ${server.user}.`;
  const mustOwn = input.publicationManaged && !published && !owns;
  return mustOwn ? [failure(`user ${server.user} does not own ${table} and may not publish it`, remedy, table)] : [];
}

function identityFailures({ table, kind, key, replicaIdentity, columns }: CatalogTable): Failure[] {
  if (kind !== 'r' && kind !== 'p') return [];
  const failures: Failure[] = [];
  const full = `ALTER TABLE ${readableName(table)} REPLICA IDENTITY FULL`;
  if (replicaIdentity === 'n') {
    failures.push(
      failure(
        `${table} has REPLICA IDENTITY NOTHING`,
        `Run ALTER TABLE ${readableName(table)} REPLICA IDENTITY DEFAULT.`,
        table,
      ),
    );
  } else if (replicaIdentity !== 'f' && key.length === 0) {
    failures.push(
      failure(`${table} has no primary key`, `Add a primary key that is not deferrable, or run ${full}.`, table),
    );
  }
  for (const name of key.filter((name) => columns.every(({ column }) => column !== name))) {
    const remedy = `Make a unique index on other columns and run ALTER TABLE ${readableName(table)} REPLICA IDENTITY USING INDEX with it.`;
    failures.push(failure(`key column ${name} of ${table} is generated and not in the log`, remedy, table));
  }
  for (const column of columns.filter((column) => column.key && !column.notNull)) {
    const remedy = `Run ALTER TABLE ${readableName(table)} ALTER COLUMN ${quoteIdent(column.column)} SET NOT NULL.`;
    failures.push(failure(`key column ${column.column} of ${table} may be NULL`, remedy, table));
  }
  return failures;
}

function leafFailures(leaf: LeafFacts, { table, replicaIdentity }: CatalogTable): Failure[] {
  const failures: Failure[] = [];
  if (leaf.kind !== 'r') {
    failures.push(
      failure(
        `partition ${leaf.table} is ${KINDS[leaf.kind] ?? 'no table'}`,
        `Detach it from ${table}: its changes are not in the log.`,
        table,
      ),
    );
  }
  // With an index each partition's own index is meant, and the server keeps them in step.
  if (leaf.replicaIdentity !== replicaIdentity) {
    const remedy = `Run ALTER TABLE ${readableName(leaf.table)} REPLICA IDENTITY as for ${table}: each partition has its own.`;
    failures.push(failure(`partition ${leaf.table} has another replica identity than ${table}`, remedy, table));
  }
  if (leaf.kind === 'r' && leaf.persistence !== 'p') {
    failures.push(
      failure(
        `partition ${leaf.table} is not in the log`,
        `Run ALTER TABLE ${readableName(leaf.table)} SET LOGGED.`,
        table,
      ),
    );
  }
  return failures;
}

function columnFailures({ table, columns }: CatalogTable): Failure[] {
  return columns.flatMap((column) => {
    const type = typeOf(column);
    return 'unsupported' in type ? [failure(`${table}: ${type.unsupported}`, type.remedy, table)] : [];
  });
}

/** Whether the log still begins at or before the table's position, and was published from there on. */
function positionFailures(
  { table, from }: WantedTable,
  { slot, slotName, publication, publicationName, ownPids }: PreflightInput,
): Failure[] {
  // While another process reads the slot it moves on, and says nothing about a position that was read before.
  if (from === null || isInUse(slot, ownPids)) return [];
  if (slot === null) return [lost(table, `replication slot ${slotName} no longer exists`)];
  if (slot.confirmed !== null && compareOffsets(from, { lsn: slot.confirmed, index: 0n }) < 0) {
    return [lost(table, `replication slot ${slotName} begins after its position`)];
  }
  const published = publication?.tables.some((entry) => entry.table === table);
  if (!published && (publication === null || publication.ours)) {
    return [lost(table, `publication ${publicationName} did not hold it since its position`)];
  }
  return [];
}

function failure(problem: string, remedy: string, table?: string): Failure {
  return { problem, remedy, ...(table === undefined ? {} : { table }) };
}

function lost(table: string, why: string): Failure {
  return {
    problem: `${table}: ${why}, so changes were missed`,
    remedy: `Run \`urutau-host table resync\` for ${table}.`,
    table,
    code: 'position-lost',
  };
}
