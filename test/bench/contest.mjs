import { BARS } from './bars.mjs';

/** Collects what was measured: runs of contenders, round by round, and figures made of their medians. */
export class Contest {
  #rounds;
  #runs = [];
  #figures = [];
  #skipped = [];
  #failures = [];

  constructor({ rounds }) {
    this.#rounds = rounds;
  }

  /**
   * Runs all contenders in turn, round after round, so that a slow minute of the machine meets everyone. A contender is
   * `{ name, run }`; `run` answers `{ rows | bytes, seconds, processes: [{ role, cpuSeconds, peakMemoryBytes }] }`.
   * Answers the median run of each, by name. A `peer` that fails says nothing about the product: it is skipped from then on.
   */
  async interleave(workload, contenders) {
    const all = new Map(contenders.map(({ name }) => [name, []]));
    for (let round = 1; round <= this.#rounds; round++) {
      for (const { name, run, peer } of contenders) {
        if (!all.has(name)) continue;
        let answer;
        try {
          answer = await run(round);
        } catch (error) {
          if (!peer) throw error;
          all.delete(name);
          this.skip(`${workload} ${name}`, error.message);
          continue;
        }
        const measured = { workload, name, round, ...perRow(answer) };
        all.get(name).push(measured);
        this.#runs.push(measured);
        console.log(`   ${inWords(measured)}`);
      }
    }
    return Object.fromEntries([...all].map(([name, runs]) => [name, medianRun(runs)]));
  }

  /** One figure beside its bar, where performance has one. */
  figure(key, value, { note } = {}) {
    const bar = BARS[key];
    if (bar === undefined) throw new Error(`there is no figure ${key}`);
    const verdict =
      bar.bar === undefined
        ? ''
        : reaches(bar, value, bar.bar)
          ? reaches(bar, value, bar.goal)
            ? 'goal'
            : 'reached'
          : 'below';
    this.#figures.push({ key, ...bar, value, verdict, ...(note === undefined ? {} : { note }) });
  }

  /** The product against each peer that came through all rounds: figures that nothing must reach. */
  ratios(workload, medians, peers) {
    for (const { name } of peers.filter(({ name }) => medians[name])) {
      const [product, peer] = [medians.urutau, medians[name]];
      const ratio = (what, better, read) =>
        this.#figures.push({
          key: `${workload} ${what} / ${name}`,
          title: `${workload}: ${what} against ${name}`,
          unit: '×',
          better,
          value: read(product) / read(peer),
          verdict: '',
        });
      ratio('rows/s', 'more', ({ rowsPerSecond }) => rowsPerSecond);
      ratio('CPU', 'less', ({ cpuMicrosPerRow }) => cpuMicrosPerRow);
    }
  }

  skip(what, why) {
    this.#skipped.push({ what, why });
    console.log(`   skipped: ${what} (${why})`);
  }

  failed(workload, message) {
    this.#failures.push({ workload, message });
    console.error(`   FAILED: ${message}`);
  }

  results() {
    return { figures: this.#figures, runs: this.#runs, skipped: this.#skipped, failures: this.#failures };
  }
}

function perRow(run) {
  const cpuSeconds = run.processes.reduce((sum, { cpuSeconds: seconds }) => sum + seconds, 0);
  return {
    ...run,
    cpuSeconds,
    ...(run.rows ? { rowsPerSecond: run.rows / run.seconds, cpuMicrosPerRow: (1e6 * cpuSeconds) / run.rows } : {}),
    ...(run.bytes ? { mbPerSecond: run.bytes / 1e6 / run.seconds } : {}),
  };
}

/** Each number's own median: the run with the median time need not have the median CPU. */
function medianRun(runs) {
  const [first] = runs;
  const of = (read) => median(runs.map(read));
  const numbers = Object.keys(first).filter((key) => typeof first[key] === 'number' && key !== 'round');
  return {
    ...Object.fromEntries(numbers.map((key) => [key, of((run) => run[key])])),
    processes: first.processes.map(({ role }, index) => ({
      role,
      cpuSeconds: of((run) => run.processes[index].cpuSeconds),
      peakMemoryBytes: Math.max(...runs.map((run) => run.processes[index].peakMemoryBytes)),
    })),
  };
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function reaches({ better }, value, limit) {
  return better === 'more' ? value >= limit : value <= limit;
}

function inWords({
  workload,
  name,
  round,
  seconds,
  rowsPerSecond,
  mbPerSecond,
  cpuMicrosPerRow,
  serverCpuSeconds,
  processes,
}) {
  const parts = [`${workload}  ${name}  round ${round}: ${seconds.toFixed(2)} s`];
  if (rowsPerSecond) parts.push(`${Math.round(rowsPerSecond / 1000)}k rows/s`, `${cpuMicrosPerRow.toFixed(2)} µs/row`);
  if (mbPerSecond) parts.push(`${Math.round(mbPerSecond)} MB/s`);
  const split = processes.map(
    ({ role, cpuSeconds, peakMemoryBytes }) =>
      `${role} ${cpuSeconds.toFixed(2)} s ${Math.round(peakMemoryBytes / 1e6)} MB`,
  );
  if (split.length > 0) parts.push(split.join(', '));
  if (serverCpuSeconds !== undefined) parts.push(`server ${serverCpuSeconds.toFixed(2)} s`);
  return parts.join(', ');
}
