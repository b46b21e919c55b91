import { HostProcess, waitFor } from '../pipeline/host-process.ts';
import { bundle } from '../sdk/bundle.ts';
import { driverFolder } from './driver-folder.ts';

const SOURCE = await bundle('../supervision/stuck-source.ts');
const SINK = await bundle('../supervision/stuck-sink.ts');

export interface Stuck {
  /** Configs of stuck-source.ts and stuck-sink.ts. */
  source?: Record<string, unknown>;
  sink?: Record<string, unknown>;
  sinkProgram?: string;
  supervision?: Record<string, unknown>;
}

/** Starts a host whose drivers get stuck as they are told to. `folders` are those of its drivers. */
export function stuckHost({ source = {}, sink = {}, sinkProgram = SINK, supervision = {} }: Stuck) {
  const folders = {
    source: driverFolder('source', ['node', SOURCE]),
    sink: driverFolder('sink', ['node', sinkProgram]),
  };
  const host = new HostProcess({
    pipeline: {
      pipeline: 'stuck',
      source: { driver: folders.source, config: source, snapshotMode: 'none' },
      sink: { driver: folders.sink, config: sink, flush: { interval: '50ms' } },
      supervision,
      tables: [{ source: 'blobs', target: 'blobs' }],
    },
  });
  return { host: host.start(), folders: Object.values(folders) };
}

/** Waits until the host has printed a text. */
export function said(host: HostProcess, text: string): Promise<true> {
  return waitFor(
    text,
    60_000,
    async () => (host.output.includes(text) ? true : null),
    () => host.output.slice(-4000),
  );
}
