import type { Relay } from '../relay.ts';
import type { SnapshotFeed } from '../source/port.ts';
import { truncateBatch } from './truncate.ts';

/** Relays one consistent picture. Its position moves only at the end: cut short, it begins anew. */
export async function readPicture(feed: SnapshotFeed, relay: Relay, stopping: () => boolean): Promise<void> {
  const { position } = relay;
  if (position.snapshot !== 'done' && position.snapshot.truncate) await relay.send(truncateBatch(feed.shape), position);
  while (!stopping()) {
    const batch = await feed.next();
    if (batch === null) return;
    await relay.send(batch, position);
  }
}
