import { type Clock, pause } from './clock.ts';
import type { ProcessGroup } from './process-group.ts';

export interface TerminateOptions {
  readonly group: ProcessGroup;
  readonly leaderExited: Promise<unknown>;
  /** Asks the driver to end; null when there is no connection to ask on. Rejects when it could not be asked. */
  readonly shutdown: ((signal: AbortSignal) => Promise<void>) | null;
  /** How long the shutdown action has; with nothing left of it the driver is signalled at once. */
  readonly askMs: number;
  /** How long SIGTERM has. */
  readonly stopMs: number;
  readonly clock: Clock;
  /** Called before each harder step, and when even SIGKILL does not end the group within `stopMs`. */
  readonly onStep?: (step: 'SIGTERM' | 'SIGKILL' | 'stuck') => void;
}

/** Asks, waits, insists. Resolves when the whole group is gone, never before, with the last step that it took. */
export async function terminate(options: TerminateOptions): Promise<'shutdown' | 'SIGTERM' | 'SIGKILL'> {
  const { group, shutdown, askMs, onStep } = options;
  // The leader's exit ends this step too: what it left behind cannot be asked, only signalled.
  if (shutdown !== null && askMs > 0 && (await asked(shutdown, options))) return 'shutdown';
  onStep?.('SIGTERM');
  group.signal('SIGTERM');
  if (await goneWithin(options)) return 'SIGTERM';
  onStep?.('SIGKILL');
  await killGroup(options);
  return 'SIGKILL';
}

/** Ends the group without asking. Resolves when it is gone. */
export async function killGroup(
  options: Pick<TerminateOptions, 'group' | 'stopMs' | 'clock' | 'onStep'>,
): Promise<void> {
  options.group.signal('SIGKILL');
  if (await goneWithin(options)) return;
  // A process in an uninterruptible wait ends when its device answers; a successor beside it would be worse than waiting.
  options.onStep?.('stuck');
  await options.group.gone;
}

async function asked(shutdown: (signal: AbortSignal) => Promise<void>, options: TerminateOptions): Promise<boolean> {
  const over = new AbortController();
  const timeUp = pause(options.clock, options.askMs, over.signal).then(() => false);
  const refused = shutdown(over.signal).then(
    () => new Promise<never>(() => {}), // Accepted: now its end is waited for.
    () => false,
  );
  const leaderLeft = options.leaderExited.then(() =>
    Promise.race([options.group.gone.then(() => true), soon(options.clock)]),
  );
  try {
    return await Promise.race([leaderLeft, refused, timeUp]);
  } finally {
    over.abort();
  }
}

/** The time in which the leader's own children may follow it unasked. */
function soon(clock: Clock): Promise<boolean> {
  return pause(clock, 200, new AbortController().signal).then(() => false);
}

async function goneWithin({
  group,
  stopMs,
  clock,
}: Pick<TerminateOptions, 'group' | 'stopMs' | 'clock'>): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([group.gone.then(() => true), pause(clock, stopMs, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}
