import type { DriverRole } from '../driver-packages/find.ts';
import type { Replayed } from '../pipeline/quarantine/replay.ts';
import type { TableStatus } from '../pipeline/status.ts';
import type { SupervisorStatus } from '../supervisor/supervisor.ts';
import { call } from './call.ts';
import { type HostStatus, resetPath, STATUS_PATH, tablePath } from './messages.ts';
import { controlPath } from './socket-path.ts';

export { NoHostRunning } from './call.ts';
export type { HostStatus } from './messages.ts';

/** The host that runs on a state folder. Every method rejects with NoHostRunning when there is none. */
export interface Control {
  status(): Promise<HostStatus>;
  /** `table` is the name at the source or at the destination. Resolves when what was under way is committed. */
  pause(table: string): Promise<TableStatus>;
  resume(table: string): Promise<TableStatus>;
  resync(table: string, options?: { discardHistory?: boolean }): Promise<TableStatus>;
  /** Asks for a commit of all that has come of the table, of its position too when nothing has; it follows the answer. */
  commit(table: string): Promise<TableStatus>;
  /** Closes the breaker of a driver, and has it started now if it waits for that. */
  resetDriver(role: DriverRole): Promise<SupervisorStatus>;
  /** Resolves when the dead letters are applied. */
  replay(table: string): Promise<Replayed>;
}

const STATUS_MS = 10_000;

export function control(stateDir: string): Control {
  const path = controlPath(stateDir);
  const post = <Answer = TableStatus>(to: string, body: unknown = {}) =>
    call(path, { method: 'POST', path: to, body }) as Promise<Answer>;
  return {
    status: () => call(path, { method: 'GET', path: STATUS_PATH, timeoutMs: STATUS_MS }) as Promise<HostStatus>,
    pause: (table) => post(tablePath(table, 'pause')),
    resume: (table) => post(tablePath(table, 'resume')),
    replay: (table) => post<Replayed>(tablePath(table, 'replay')),
    resync: (table, { discardHistory = false } = {}) => post(tablePath(table, 'resync'), { discardHistory }),
    commit: (table) => post(tablePath(table, 'commit')),
    resetDriver: (role) => post<SupervisorStatus>(resetPath(role)),
  };
}
