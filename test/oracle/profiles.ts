import type { WorkloadShape } from './generator.ts';

export interface Profile extends WorkloadShape {
  rate: number;
  runMs: number;
  lanes: number;
  settleMs: number;
}

const MINUTE_MS = 60_000;

export const PROFILES = {
  smoke: {
    rows: 2_000,
    rate: 30,
    runMs: 3 * MINUTE_MS,
    transactionRowsMax: 150,
    payloadBytesMax: 64 * 1024,
    lanes: 2,
    settleMs: 30 * MINUTE_MS,
  },
  'full-100k': {
    rows: 100_000,
    rate: 1_000,
    runMs: 10 * MINUTE_MS,
    transactionRowsMax: 2_000,
    payloadBytesMax: 256 * 1024,
    lanes: 4,
    settleMs: 60 * MINUTE_MS,
  },
  full: {
    rows: 1_000_000,
    rate: 1_000,
    runMs: 30 * MINUTE_MS,
    transactionRowsMax: 2_000,
    payloadBytesMax: 256 * 1024,
    lanes: 4,
    settleMs: 60 * MINUTE_MS,
  },
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;
