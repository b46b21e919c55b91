import { accessSync, constants } from 'node:fs';
import { UrutauError } from '@urutau/contract';
import { makeFolder } from '../make-folder.ts';

/** Makes the folder, for this user alone, where it is missing. */
export function makeStateFolder(stateDir: string): void {
  try {
    makeFolder(stateDir, 0o700);
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
