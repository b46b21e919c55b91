/** Why a table stands still: by a person, or because something about it failed. */
export interface PauseReason {
  by: 'user' | 'fault';
  code: string;
  message: string;
  remedy: string;
  /** Key of the row that was refused, where one was. */
  key?: string;
}

/** One table of a pipeline, over all sessions. */
export type TableState =
  /** No session carries it at the moment. */
  | { kind: 'waiting' }
  | { kind: 'planning' }
  | { kind: 'snapshotting' }
  | { kind: 'streaming' }
  | { kind: 'paused'; reason: PauseReason }
  /** Everything that was asked for is in the destination (`--until-caught-up`). */
  | { kind: 'done' };

export type TableEvent =
  | { kind: 'started' }
  | { kind: 'snapshot-began' }
  | { kind: 'caught-up-with-snapshot' }
  | { kind: 'session-ended' }
  | { kind: 'fault'; reason: PauseReason }
  | { kind: 'pause'; reason: PauseReason }
  | { kind: 'resume' }
  | { kind: 'resync' }
  | { kind: 'finished' };

/** `begin-session-anew`: resume points change, so all tables are assigned again. `stop-task`: this table alone ends. */
export type TableEffect = 'stop-task' | 'begin-session-anew';

export type TableTransition = readonly [TableState, ...TableEffect[]];

/** Pure: no clock, no stream. The pipeline performs the effects in the order given. */
export function next(state: TableState, event: TableEvent): TableTransition {
  switch (event.kind) {
    case 'started':
      return state.kind === 'waiting' ? [{ kind: 'planning' }] : [state];
    case 'snapshot-began':
      return isRunning(state) ? [{ kind: 'snapshotting' }] : [state];
    case 'caught-up-with-snapshot':
      return isRunning(state) ? [{ kind: 'streaming' }] : [state];
    case 'session-ended':
      return isRunning(state) ? [{ kind: 'waiting' }] : [state];
    case 'fault':
      // A person's word stands: a table paused by hand does not change its reason because its last batch failed.
      return state.kind === 'paused' ? [state] : [{ kind: 'paused', reason: event.reason }, 'stop-task'];
    case 'pause':
      return [{ kind: 'paused', reason: event.reason }, ...(isRunning(state) ? (['stop-task'] as const) : [])];
    case 'resume':
      return state.kind === 'paused' ? [{ kind: 'waiting' }, 'begin-session-anew'] : [state];
    case 'resync':
      return [{ kind: 'waiting' }, 'begin-session-anew'];
    case 'finished':
      return isRunning(state) ? [{ kind: 'done' }] : [state];
  }
}

function isRunning({ kind }: TableState): boolean {
  switch (kind) {
    case 'planning':
    case 'snapshotting':
    case 'streaming':
      return true;
    case 'waiting':
    case 'paused':
    case 'done':
      return false;
  }
}
