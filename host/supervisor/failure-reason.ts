import type { Fault } from './diagnose.ts';

/** What became of a driver, in a word that a metric may carry. */
export type FailureReason = Exclude<Fault['kind'], 'exited'> | 'exit' | 'signal';

export function failureReason(fault: Fault): FailureReason {
  if (fault.kind !== 'exited') return fault.kind;
  return fault.exit.signal === null ? 'exit' : 'signal';
}

/** Of each reason how often; none is left out. */
export type FailureCounts = Readonly<Record<FailureReason, number>>;

export const NO_FAILURES: FailureCounts = {
  unusable: 0,
  refused: 0,
  exit: 0,
  signal: 0,
  'not-ready': 0,
  'bad-readiness': 0,
  handshake: 0,
  dead: 0,
  unauthenticated: 0,
};
