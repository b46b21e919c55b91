import { type TeardownRequest, UrutauError } from '@urutau/sdk';
import { quoteIdent } from '../connection.ts';
import type { Query } from './catalog.ts';
import { loadPublication, type Publication, publicationList } from './publication.ts';
import { dropSlot, loadSlot } from './slot.ts';

export interface TeardownOptions {
  slotName: string;
  publicationName: string;
  request: TeardownRequest;
}

/**
 * Removes what this pipeline made beside the data, and only with proof that it did: the publication carries a mark. For
 * single tables only their place in the publication goes. With `check` it only tells.
 */
export async function teardown(
  query: Query,
  { slotName, publicationName, request }: TeardownOptions,
): Promise<string[]> {
  const publication = await loadPublication(query, publicationName);
  if (request.tables !== 'all')
    return leavePublication(query, publicationName, publication, request.tables, request.check);
  const items: string[] = [];
  const slot = await loadSlot(query, slotName);
  if (slot && publication?.slotOurs) {
    if (slot.activePid !== null && !request.check) {
      throw new UrutauError(
        'precondition-failed',
        `replication slot ${slotName} is in use (server process ${slot.activePid})`,
        {
          remedy: 'Stop the host or tool that reads it, then tear down again.',
        },
      );
    }
    items.push(`replication slot ${slotName}`);
    if (!request.check) await dropSlot(query, slotName);
  } else if (slot) {
    items.push(
      `replication slot ${slotName} stays: nothing shows that this pipeline made it; drop it with SELECT pg_drop_replication_slot('${slotName}')`,
    );
  }
  if (publication?.ours) {
    items.push(`publication ${publicationName}`);
    if (!request.check) await query(`DROP PUBLICATION ${quoteIdent(publicationName)}`);
  }
  return items;
}

async function leavePublication(
  query: Query,
  name: string,
  publication: Publication | null,
  tables: readonly string[],
  check: boolean,
): Promise<string[]> {
  const published = publication?.ours
    ? publication.tables.map(({ table }) => table).filter((table) => tables.includes(table))
    : [];
  if (published.length > 0 && !check) {
    await query(`ALTER PUBLICATION ${quoteIdent(name)} DROP TABLE ${publicationList(published)}`);
  }
  return published.map((table) => `table ${table} in publication ${name}`);
}
