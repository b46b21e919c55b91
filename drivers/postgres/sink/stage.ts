import type { Session } from './connection-pool.ts';
import type { Stage } from './table-plan.ts';

/** Every staging table of a session is emptied at the end of each of its transactions, so they are kept few. */
const STAGES_MAX = 16;

/** Makes the session's staging table where it is not there yet. Must be called outside a transaction. */
export async function ensureStage({ client, stages }: Session, { name, create }: Stage): Promise<void> {
  if (stages.has(name)) return;
  if (stages.size >= STAGES_MAX) {
    const [oldest] = stages;
    await client.query(`drop table ${oldest}`);
    stages.delete(oldest!);
  }
  await client.query(create);
  stages.add(name);
}
