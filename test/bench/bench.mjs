import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { Contest } from './contest.mjs';
import { printTable } from './report.mjs';
import { startServers } from './servers.mjs';
import { findTools } from './tools.mjs';

const WORKLOADS = {
  start: () => import('./workloads/start.mjs'),
  w1: () => import('./workloads/w1-stream.mjs'),
  w2: () => import('./workloads/w2-snapshot.mjs'),
  w4: () => import('./workloads/w4-into-postgres.mjs'),
  w5: () => import('./workloads/w5-relay.mjs'),
  w6: () => import('./workloads/w6-latency.mjs'),
  w7: () => import('./workloads/w7-memory.mjs'),
};

/** Runs the workloads, prints a table and writes the JSON. Answers the exit code: 1 when a run failed or was wrong. */
export async function bench(options) {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-bench-'));
  const closers = [
    () => (options.keep ? console.log(`the logs are in ${folder}`) : rmSync(folder, { recursive: true, force: true })),
  ];
  const ending = endOnSignal(closers);
  const contest = new Contest({ rounds: options.rounds });
  try {
    const tools = await findTools();
    const servers = await startServers();
    closers.push(() => servers.close());
    if (options.profile) mkdirSync(options.profile, { recursive: true });
    const profile = options.profile && resolve(options.profile);
    const context = { options: { ...options, profile }, folder, tools, servers, contest };
    for (const [name, load] of Object.entries(WORKLOADS)) {
      if (!options.only.includes(name)) continue;
      console.log(`\n── ${name}`);
      try {
        const { run } = await load();
        await run(context);
      } catch (error) {
        contest.failed(name, error.message);
      }
    }
  } finally {
    ending.disarm();
    while (closers.length > 0) await closers.pop()();
  }
  const results = contest.results();
  writeFileSync(options.output, `${JSON.stringify({ ...machine(), options, ...results }, null, 2)}\n`);
  printTable(results);
  console.log(`\n${options.output} holds every run`);
  return results.failures.length > 0 ? 1 : 0;
}

function machine() {
  const [cpu] = cpus();
  return {
    at: new Date().toISOString(),
    node: process.version,
    machine: { cpus: cpus().length, model: cpu?.model, memoryBytes: totalmem() },
  };
}

/** What is being run ends with this process; servers and folders need a word. */
function endOnSignal(closers) {
  const end = async () => {
    console.log('\nEnding …');
    while (closers.length > 0) await closers.pop()();
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end);
  return {
    disarm() {
      for (const signal of ['SIGINT', 'SIGTERM']) process.removeListener(signal, end);
    },
  };
}
