import { ENV, FAULT_POINTS, type FaultPoint } from './registry.ts';
import { UrutauError } from './urutau-error.ts';

/**
 * What happens at a fault point: `kill` and `stop` are SIGKILL and SIGSTOP, `exit0` an end in good order that nobody
 * asked for. `hang`: an answer or a stream goes no further, a step blocks the whole process. `drop-reply`: the work is
 * done and its answer never arrives, for every connection to the process breaks. `half-close`: the driver's end of
 * the stream closes without a status, while the process lives and the host's end is open.
 */
export type FaultAct = 'kill' | 'stop' | 'exit0' | 'hang' | 'drop-reply' | 'half-close';

/** One fault to play: at the `nth` time (1, 2, …) that the process comes to the point, once. */
export interface Fault {
  readonly point: FaultPoint;
  readonly nth: number;
  readonly act: FaultAct;
}

const ACTS: readonly FaultAct[] = ['kill', 'stop', 'exit0', 'hang', 'drop-reply', 'half-close'];

/** Reads `point[:nth][:act]`; the first time and `kill` by default. Throws `config-invalid` with what would be right. */
export function parseFault(text: string): Fault {
  const [name = '', ...options] = text.split(':');
  const kind = FAULT_POINTS[name as FaultPoint]?.kind;
  if (kind === undefined) throw invalid(text, `there is no fault point ${name}`, Object.keys(FAULT_POINTS));
  const nth = /^[1-9]\d{0,8}$/.test(options[0] ?? '') ? Number(options.shift()) : 1;
  const act = options.length === 0 ? 'kill' : options.join(':');
  const known = ACTS.filter((each) => mayBe(each, kind));
  if (!known.includes(act as FaultAct)) throw invalid(text, `${act} is nothing that can happen at ${name}`, known);
  return { point: name as FaultPoint, nth, act: act as FaultAct };
}

function mayBe(act: FaultAct, kind: (typeof FAULT_POINTS)[FaultPoint]['kind']): boolean {
  if (act === 'drop-reply') return kind === 'reply';
  return act !== 'half-close' || kind === 'stream';
}

function invalid(text: string, problem: string, known: readonly string[]): UrutauError {
  return new UrutauError('config-invalid', `${ENV.fault}=${text}: ${problem}; expected one of ${known.join(', ')}`, {
    remedy: `Write ${ENV.fault}=point[:nth][:act], or unset it.`,
  });
}

/** The process that the fault befalls. */
export interface FaultyProcess {
  kill(signal: 'SIGKILL' | 'SIGSTOP'): void;
  exit(code: number): void;
  /** Writes a line at once: nothing of the process may run afterwards. */
  say(line: string): void;
}

/** What the caller has to do at a point where the fault is not the process's own. */
export type FaultOutcome = 'hang' | 'drop-reply' | 'half-close';

/** Counts how often the process comes to the point, and plays the fault when its time has come. */
export function faultPlayer({ point, nth, act }: Fault, self: FaultyProcess): (at: FaultPoint) => FaultOutcome | null {
  let times = 0;
  return (at) => {
    if (at !== point || ++times !== nth) return null;
    self.say(`fault played: ${point}:${nth}:${act}`);
    switch (act) {
      case 'kill':
        self.kill('SIGKILL');
        return null;
      case 'stop':
        self.kill('SIGSTOP');
        return null;
      case 'exit0':
        self.exit(0);
        return null;
      case 'hang':
        if (FAULT_POINTS[point].kind === 'step') blockForEver();
        return act;
      case 'drop-reply':
      case 'half-close':
        return act;
    }
  };
}

/** Nothing else of the process runs from here on. */
function blockForEver(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
