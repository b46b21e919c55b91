import {
  type Capabilities,
  type Read,
  type ReadDescriptor,
  type SourceDriver,
  type TableListing,
  UrutauError,
} from '@urutau/sdk';
import { clientConfig, type SinkConfig, targetName } from '../sink/config.ts';
import { listTables, loadTables } from '../source/catalog.ts';
import type { Clock } from '../source/clock.ts';
import { readSnapshot } from '../source/consistent-snapshot.ts';
import { withRowVersions } from '../source/row-versions.ts';
import { SideConnections } from '../source/side-connections.ts';
import { readableShape } from './readable-shape.ts';

export interface PostgresReaderOptions {
  /** That of the sink. */
  config: SinkConfig;
  clock: Clock;
}

/**
 * The targets of the sink as a source (PKG-6): each read is one consistent snapshot of a table, named as the sink names
 * it. It takes SELECT and nothing else: there is no log to read, so there is neither a slot nor a position.
 */
export class PostgresReader implements SourceDriver {
  readonly capabilities: Capabilities = { snapshotOnly: true, maxStreams: 100 };
  readonly #config: SinkConfig;
  readonly #side: SideConnections;

  constructor({ config, clock }: PostgresReaderOptions) {
    this.#config = config;
    this.#side = new SideConnections(clientConfig(config), { maxThreads: READS_MAX, retryCount: RETRIES, clock });
  }

  async listTables(): Promise<TableListing[]> {
    return (await listTables(this.#side.query)).map(({ table }) => ({ name: table, supportsSnapshot: true }));
  }

  async read({ table, mode, rowVersions = false }: ReadDescriptor): Promise<Read> {
    if (mode !== 'snapshot') {
      throw new UrutauError(
        'protocol-violation',
        `${table}: a destination is read back as a snapshot, not as ${mode}`,
        {
          table,
        },
      );
    }
    const { full } = targetName(table, this.#config);
    const catalog = (await loadTables(this.#side.query, [full])).get(full);
    if (!catalog) {
      throw new UrutauError('table-not-found', `table ${full} does not exist in the destination`, { table });
    }
    const rowShape = rowVersions ? withRowVersions(readableShape(catalog)) : readableShape(catalog);
    const options = { table: full, partitioned: catalog.kind === 'p', rowShape, picture: null, side: this.#side };
    return {
      shape: rowShape.shape,
      metadata: { endOffset: '' },
      ...(catalog.estimatedRows === null ? {} : { totalRecords: catalog.estimatedRows }),
      open: (signal) => readSnapshot(options, signal),
    };
  }

  close(): Promise<void> {
    return this.#side.close();
  }
}

const READS_MAX = 4;
const RETRIES = 3;
