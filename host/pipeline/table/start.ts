import type { Position } from '../checkpointed-stream.ts';
import type { QuarantinedKeys } from '../quarantine/quarantined-keys.ts';

/** Where a session takes a table up. */
export interface Start {
  position: Position;
  /** The checkpoint text that is stored, or null. */
  stored: string | null;
  /** Number for the first write stream of the session: one above the stored one. */
  stream: number;
  /** No checkpoint was there: rows in the target would be somebody else's. */
  fresh: boolean;
  /** A person asked for it: the target is emptied and the table read anew. */
  resync: boolean;
  /** Whose changes go to the dead letters. */
  keys: QuarantinedKeys;
  /** The resync makes dead letters void. */
  voidsLetters: boolean;
  /** Ids of the shapes that were accepted; changes of another one stop the table (`schemaChange: pause`). */
  acceptedShapes: Set<string>;
}
