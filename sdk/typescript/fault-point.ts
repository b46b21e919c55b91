import { writeSync } from 'node:fs';
import { ENV, type FaultOutcome, type FaultPoint, type FaultyProcess, faultPlayer, parseFault } from '@urutau/contract';

let play: ReturnType<typeof faultPlayer> | null = null;

/** Called once, at the start. Throws `config-invalid` for a fault that there is not. */
export function armFaultPoints(env: NodeJS.ProcessEnv): void {
  const text = env[ENV.fault];
  if (text) play = faultPlayer(parseFault(text), SELF);
}

const SELF: FaultyProcess = {
  kill: (signal) => void process.kill(process.pid, signal),
  exit: (code) => process.exit(code),
  say: (line) => void writeSync(2, `${line}\n`),
};

/** A named place at which a test may let this process fail (docs/fault-points.md). Free of cost otherwise. */
export function faultPoint(at: FaultPoint): FaultOutcome | null {
  return play === null ? null : play(at);
}

/** A fault point before an answer leaves. */
export async function faultPointOfAnswer(at: FaultPoint, breakConnections: () => void): Promise<void> {
  const outcome = faultPoint(at);
  if (outcome === null) return;
  if (outcome === 'drop-reply') breakConnections();
  await never();
}

/** A fault point within a stream of data. */
export async function faultPointOfStream(at: FaultPoint, halfClose: () => Promise<void> | void): Promise<void> {
  const outcome = faultPoint(at);
  if (outcome === null) return;
  if (outcome === 'half-close') await halfClose();
  await never();
}

function never(): Promise<never> {
  return new Promise(() => {});
}
