import { bootstrap } from './bootstrap.ts';
import { cast } from './cast.ts';
import { driverChoice } from './driver-choice.ts';
import { enrich } from './enrich.ts';
import { exactNumbers } from './exact-numbers.ts';
import { fieldOwners } from './field-owners.ts';
import { filter } from './filter.ts';
import { identity } from './identity.ts';
import { kafka } from './kafka.ts';
import { metadata } from './metadata.ts';
import { mysql } from './mysql.ts';
import { partition } from './partition.ts';
import { postgres } from './postgres.ts';
import { quarantine } from './quarantine.ts';
import type { Rule } from './rule.ts';
import { sink } from './sink.ts';
import { supervision } from './supervision.ts';
import { tables } from './tables.ts';

/** Every rule whose breach is an error. */
export const RULES: readonly Rule[] = [
  driverChoice,
  fieldOwners,
  postgres,
  mysql,
  kafka,
  sink,
  tables,
  identity,
  filter,
  metadata,
  cast,
  partition,
  bootstrap,
  enrich,
  quarantine,
  supervision,
  exactNumbers,
];
