import { ENV, type FaultOutcome, type FaultPoint, faultPlayer, parseFault } from '@urutau/contract';

let play: ReturnType<typeof faultPlayer> | null = null;

/** Called once, at the start. Throws `config-invalid` for a fault that there is not. */
export function armFaultPoints(env: NodeJS.ProcessEnv): void {
  const text = env[ENV.fault];
  if (text) play = faultPlayer(parseFault(text), process);
}

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

/** A fault point within a stream of data. True when the stream is to end here in good order. */
export async function faultPointOfStream(at: FaultPoint): Promise<boolean> {
  const outcome = faultPoint(at);
  if (outcome === 'hang') await never();
  return outcome === 'half-close';
}

function never(): Promise<never> {
  return new Promise(() => {});
}
