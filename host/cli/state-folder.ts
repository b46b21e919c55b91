import { accessSync, constants, mkdirSync } from 'node:fs';
import { UrutauError } from '@urutau/contract';

/** Makes the folder, for this user alone, where it is missing. */
export function makeStateFolder(stateDir: string): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new UrutauError(
      'config-invalid',
      `the state folder ${stateDir} cannot be used: ${(cause as Error).message}`,
      {
        cause,
        remedy: 'Name a folder that this user may write to with --state-dir.',
      },
    );
  }
}
