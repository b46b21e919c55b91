import type { VerifiedTable } from '../../../host/verify/verify-pipeline.ts';
import { hostCommand } from '../cli/host-command.ts';

export interface Verified {
  readonly code: number | null;
  readonly stderr: string;
  readonly tables: VerifiedTable[];
}

/** Runs `verify` as a user does, with its answer as data. */
export async function verify(
  file: string,
  env: Readonly<Record<string, string>>,
  ...more: readonly string[]
): Promise<Verified> {
  const { code, stdout, stderr } = await hostCommand(['verify', '-f', file, '--output', 'json', ...more], env);
  return { code, stderr, tables: stdout === '' ? [] : JSON.parse(stdout).tables };
}
