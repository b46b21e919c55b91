import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { FaultAct } from '@urutau/contract';
import { afterAll, expect, inject, test } from 'vitest';
import { type FaultCase, matrix, nameOf } from '../chaos/fault-cases.ts';
import { matrixPage } from '../chaos/matrix-page.ts';
import { type Played, play } from '../chaos/play.ts';
import { inPool } from '../chaos/pool.ts';
import {
  diskFullUnavailable,
  nameOfServerCase,
  playServerFault,
  SERVER_CASES,
  type ServerCase,
} from '../chaos/server-faults.ts';
import { figure } from '../figures.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const ONLY = { point: process.env['URUTAU_TEST_POINT'], act: process.env['URUTAU_TEST_ACT'] as FaultAct | undefined };
const PAGE = resolve(import.meta.dirname, '../../docs/kill-matrix.md');

const cases = matrix().filter(
  ({ point, act }) =>
    (ONLY.point === undefined || point.startsWith(ONLY.point)) && (ONLY.act === undefined || act === ONLY.act),
);
const serverCases = ONLY.point === undefined && ONLY.act === undefined ? SERVER_CASES : [];
const servers = { source: inject('postgres18'), sink: inject('postgres18') };
const results = inPool(cases, 4, (fault) => play(fault, servers, SEED));
const outcomes = new Map<FaultCase, Played | null>();
const recovered = new Map<ServerCase, number | null>();

for (const [index, fault] of cases.entries()) {
  const result = results[index]!;
  result.catch(() => {}); // Its own test reports it, which may come later.
  test(`after ${nameOf(fault)} nothing is lost or doubled`, async () => {
    const played = await result.catch((error: Error) => {
      outcomes.set(fault, null);
      const again = `URUTAU_TEST_SEED=${SEED} URUTAU_TEST_POINT=${fault.point} URUTAU_TEST_ACT=${fault.act}`;
      throw new Error(`${error.message}\nagain: ${again}`);
    });
    outcomes.set(fault, played);
    expect(played.noticedMs).toBeLessThanOrEqual(played.recoveredMs);
  });
}

for (const fault of serverCases) {
  test.skipIf(fault.fault === 'disk-full' && diskFullUnavailable() !== undefined)(
    `nothing is lost or doubled when ${nameOfServerCase(fault)}`,
    async () => {
      recovered.set(fault, null);
      const { recoveredMs } = await playServerFault(fault, SEED);
      recovered.set(fault, recoveredMs);
      expect(recoveredMs).toBeLessThan(90_000);
    },
  );
}

afterAll(() => {
  const all = [...outcomes.values(), ...recovered.values()];
  figure('kill matrix', `${all.filter((result) => result !== null).length} of ${all.length} cases without a loss`);
  if (process.env['URUTAU_WRITE_MATRIX']) writeFileSync(PAGE, matrixPage(outcomes, recovered));
});
