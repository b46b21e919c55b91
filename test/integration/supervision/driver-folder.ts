import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** The folder of a driver that is run by `command`; its path is known to all processes of the driver. Goes with the test. */
export function driverFolder(role: 'source' | 'sink', command: readonly string[]): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `urutau-${role}-`)));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const manifest = { name: `test-${role}`, version: '0.1.0', roles: [role], command, protocolVersions: [1] };
  writeFileSync(
    join(folder, 'plugin.yaml'),
    JSON.stringify({ ...manifest, ...(role === 'sink' ? { capabilities: { idempotentWrite: true } } : {}) }),
  );
  writeFileSync(join(folder, 'config.schema.json'), JSON.stringify({ type: 'object' }));
  return folder;
}

/** Everything that still runs and was started from one of these folders, however far down, as `pid command line`. */
export function processesOf(folders: readonly string[]): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
        if (!folders.some((folder) => environment.includes(`=${folder}\0`))) return [];
        return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()}`];
      } catch {
        return []; // It ended meanwhile, or is another user's.
      }
    });
}
