// Counts changes with the npm package of that name and its pgoutput parser, and acknowledges none:
// pg-logical-replication.mjs URI SLOT PUBLICATION CHANGES
import { LogicalReplicationService, PgoutputPlugin } from 'pg-logical-replication';

const CHANGES = new Set(['insert', 'update', 'delete']);

const [connectionString, slot, publication, changes] = process.argv.slice(2);
const service = new LogicalReplicationService(
  { connectionString },
  { acknowledge: { auto: false, timeoutSeconds: 0 } },
);
let left = Number(changes);
service.on('data', (_lsn, { tag }) => {
  if (CHANGES.has(tag) && --left === 0) service.stop().then(() => process.exit(0));
});
service.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
await service.subscribe(new PgoutputPlugin({ protoVersion: 1, publicationNames: [publication] }), slot);
