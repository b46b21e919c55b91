import { textsIn } from '../driver-packages/config-schema.ts';
import type { DriverRole } from '../driver-packages/find.ts';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import type { Log } from '../observe/log.ts';
import type { Pipeline } from '../spec/pipeline.ts';
import { revealed, Secret } from '../spec/secrets.ts';
import { Supervisor, type SupervisorOptions } from '../supervisor/supervisor.ts';

export interface Supervised {
  readonly role: DriverRole;
  readonly driver: DriverPackage;
  /** As in the pipeline; may hold `Secret`s. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly settings: Pipeline['supervision'];
  readonly log: Log;
  readonly random: () => number;
}

/** A supervisor of one driver of a pipeline; its secrets go into the driver's config file and nowhere else. */
export function supervise(
  { role, driver, config, settings, log, random }: Supervised,
  connect: SupervisorOptions['connect'],
): Supervisor {
  return new Supervisor({
    role,
    driver,
    config: () => revealed(config),
    secrets: () => secretTexts(config),
    settings,
    connect,
    log,
    random,
  });
}

function secretTexts(value: unknown): string[] {
  if (value instanceof Secret) return textsIn(value.reveal());
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(secretTexts) : [];
}
