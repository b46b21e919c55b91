import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type HostOptions as AnyHostOptions, HostProgram } from '../../services/host-program.ts';

export { waitFor } from '../../services/wait-for.ts';

/** The folder is one of the test's own by default. */
export type HostOptions = Omit<AnyHostOptions, 'folder'> & {
  folder?: string;
  /** Takes what ends the host; the end of the test by default. */
  atEnd?: (cleanup: () => Promise<void>) => void;
};

/** A folder that goes with the test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A host that ends by itself when its test does. */
export class HostProcess extends HostProgram {
  constructor(options: HostOptions) {
    super({ ...options, folder: options.folder ?? testFolder() });
    (options.atEnd ?? onTestFinished)(() => this.kill());
  }
}

export function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8'));
}
