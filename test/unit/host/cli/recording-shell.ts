import { fileURLToPath } from 'node:url';
import type { Shell } from '../../../../host/cli/shell.ts';

export interface RecordingShell extends Shell {
  /** What was written so far. */
  readonly written: { out: string; err: string };
}

/** A shell in a script's place: no terminal, nobody to answer, and what is written is kept. */
export function recordingShell(changes: Partial<Shell> = {}): RecordingShell {
  const written = { out: '', err: '' };
  const terminal = (to: 'out' | 'err') => ({
    write: (text: string) => {
      written[to] += text;
    },
    isTerminal: false,
    columns: 80,
  });
  return {
    env: {},
    out: terminal('out'),
    err: terminal('err'),
    interactive: false,
    places: {
      hostDirectory: fileURLToPath(new URL('../../../../host', import.meta.url)),
      installedDirectory: '/nowhere',
    },
    ask: () => Promise.reject(new Error('nobody is there')),
    onInterrupt: () => () => {},
    exit: () => {},
    usage: () => ({ cpuSeconds: 0, peakMemoryBytes: 0 }),
    nowMs: () => 0,
    wallMs: () => 0,
    random: () => 0.5,
    randomId: () => 'run',
    nodeVersion: '20.19.0',
    ...changes,
    written,
  };
}
