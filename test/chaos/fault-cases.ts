import { FAULT_POINTS, type FaultAct, type FaultPoint } from '@urutau/contract';

/** One cell of the kill matrix: what happens where. */
export interface FaultCase {
  point: FaultPoint;
  /** The time at which the process comes to the point. */
  nth: number;
  act: FaultAct;
  /** Who comes there. */
  process: 'source' | 'sink' | 'host';
  /** What must run for it: one row per key, one row per change (and one consistent picture), or lines on stdout. */
  pipeline: 'upsert' | 'append' | 'stdout';
  /** Whether it is come to while the pipeline runs, or when it is asked to end. */
  during: 'run' | 'stop';
}

/** Every fault point with every act of the kill matrix that can happen there. */
export function matrix(): FaultCase[] {
  return points().flatMap((point) => actsAt(point).map((act) => caseOf(point, act)));
}

/** Every fault point once: its process is killed there. */
export function eachPointOnce(): FaultCase[] {
  return points().map((point) => caseOf(point, 'kill'));
}

export function nameOf({ point, act, process }: FaultCase): string {
  return `${DONE[act]} the ${process === 'host' ? 'host' : `${process} driver`} at ${point}`;
}

const DONE: Record<FaultAct, string> = {
  kill: 'kill -9 of',
  stop: 'SIGSTOP of',
  exit0: 'exit 0 of',
  hang: 'a hang of',
  'drop-reply': 'a lost reply of',
  'half-close': 'a half-closed stream of',
};

function points(): FaultPoint[] {
  return (Object.keys(FAULT_POINTS) as FaultPoint[]).filter((point) => !OF_QUARANTINE.has(point));
}

/** Come to only where a target refuses rows: test/integration/quarantine plays them. */
export const OF_QUARANTINE: ReadonlySet<FaultPoint> = new Set([
  'host.keys.quarantined',
  'host.letters.stored',
  'host.letters.applied',
]);

function actsAt(point: FaultPoint): FaultAct[] {
  const { kind } = FAULT_POINTS[point];
  const common: FaultAct[] = ['kill', 'stop', 'exit0'];
  if (kind === 'reply') return [...common, 'drop-reply'];
  return kind === 'stream' ? [...common, 'half-close'] : common;
}

function caseOf(point: FaultPoint, act: FaultAct): FaultCase {
  const pipeline = APPEND.has(point) ? 'append' : STDOUT.has(point) ? 'stdout' : 'upsert';
  const process = point.split('.')[0] as FaultCase['process'];
  return { point, nth: NTH[point] ?? 1, act, process, pipeline, during: AT_STOP.has(point) ? 'stop' : 'run' };
}

const APPEND: ReadonlySet<FaultPoint> = new Set([
  'source.picture.opened',
  'source.picture.sent',
  'host.picture.relayed',
]);
const STDOUT: ReadonlySet<FaultPoint> = new Set(['sink.flush.answer', 'host.flush.answered']);
const AT_STOP: ReadonlySet<FaultPoint> = new Set([
  'source.shutdown.asked',
  'sink.shutdown.asked',
  'host.drained',
  'host.drivers.ended',
]);

/** Not the first time, where the first is like no other: a commit that only opens a stream, a row before the snapshot. */
const NTH: Partial<Record<FaultPoint, number>> = {
  'source.log.received': 60,
  'source.log.decoded': 40,
  'source.batch.closed': 4,
  'source.changes.sent': 4,
  'source.chunk.opened': 3,
  'source.chunk.sent': 3,
  'source.progress.answer': 3,
  'source.heartbeat.answer': 5,
  'source.flight-info.answer': 3,
  'sink.batch.received': 5,
  'sink.batch.staged': 5,
  'sink.commit.asked': 5,
  'sink.commit.fenced': 4,
  'sink.commit.merged': 4,
  'sink.commit.answer': 5,
  'sink.flush.answer': 2,
  'sink.heartbeat.answer': 5,
  'host.driver.spawned': 2,
  'host.batch.received': 5,
  'host.batch.sent': 5,
  'host.chunk.gated': 3,
  'host.chunk.relayed': 3,
  'host.commit.asked': 5,
  'host.commit.answered': 5,
  'host.flush.answered': 2,
  'host.confirm.asked': 2,
  'host.confirm.answered': 2,
};
