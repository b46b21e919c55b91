import { spawn } from 'node:child_process';
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { endWithUs } from './end-with-us.mjs';
import { cpuOfTree } from './measure.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const HOST = join(root, 'host/dist/main.js');
const RUN_MS_MAX = 1_200_000;

/** Writes a pipeline file into a folder of its own, emptied first unless `keepState`, and answers how to run it. */
export function product({ folder, name, pipeline, keepState = false, plugins = {}, profile }) {
  const home = join(folder, name);
  if (!keepState) rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const file = join(home, 'pipeline.yaml');
  const store = { kind: 'sqlite', path: 'positions.db' };
  writeFileSync(file, stringify({ pipeline: 'bench', store, ...pipeline }));
  const chosen = profile ? { ...plugins, ...profiledPlugins({ pipeline, plugins, profile, home }) } : plugins;
  const args = [
    ...(profile ? cpuProfile(profile, 'host') : []),
    HOST,
    'run',
    ...['-f', file],
    ...['--state-dir', join(home, 'state')],
    ...(chosen.source ? ['--source-plugin', chosen.source] : []),
    ...(chosen.sink ? ['--sink-plugin', chosen.sink] : []),
  ];
  return {
    home,
    /** Runs until everything is in the destination. `stdoutFile` takes what the stdout sink prints. */
    async untilCaughtUp({ server, stdoutFile } = {}) {
      const serverBefore = cpuOfTree(server?.pid);
      const startMs = performance.now();
      const summaryFile = join(home, 'summary.json');
      const host = startHost([...args, '--until-caught-up', '--summary', summaryFile], { home, stdoutFile });
      const timer = setTimeout(() => host.kill(), RUN_MS_MAX);
      const ended = await host.ended;
      clearTimeout(timer);
      const seconds = (performance.now() - startMs) / 1000;
      if (ended !== 0) throw new Error(`${name}: the host ended with ${ended}: ${host.lastLines()}`);
      const summary = JSON.parse(readFileSync(summaryFile, 'utf8'));
      return {
        seconds,
        processes: summary.processes,
        summary,
        ...(server ? { serverCpuSeconds: cpuOfTree(server.pid) - serverBefore } : {}),
      };
    },
    /** Starts it and lets it run. `stop` ends it in order and answers the summary. */
    start() {
      const summaryFile = join(home, 'summary.json');
      const host = startHost([...args, '--summary', summaryFile], { home });
      return {
        pid: host.pid,
        throwIfEnded: () => {
          if (host.end !== undefined) throw new Error(`${name}: the host ended with ${host.end}: ${host.lastLines()}`);
        },
        async stop() {
          host.interrupt();
          const ended = await host.ended;
          if (ended !== 0) throw new Error(`${name}: the host ended with ${ended}: ${host.lastLines()}`);
          return JSON.parse(readFileSync(summaryFile, 'utf8'));
        },
      };
    },
  };
}

function startHost(args, { home, stdoutFile }) {
  const log = join(home, 'host.log');
  const [output, errors] = [openSync(stdoutFile ?? join(home, 'stdout'), 'w'), openSync(log, 'w')];
  const child = spawn(process.execPath, args, { cwd: home, stdio: ['ignore', output, errors] });
  endWithUs(child);
  closeSync(output);
  closeSync(errors);
  const host = {
    pid: child.pid,
    end: undefined,
    ended: new Promise((done) => {
      child.once('error', (error) => done(error.message));
      child.once('exit', (code, signal) => done(signal ?? code));
    }).then((how) => (host.end = how)),
    interrupt: () => child.kill('SIGINT'),
    kill: () => child.kill('SIGKILL'),
    lastLines: () => readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n'),
  };
  return host;
}

function cpuProfile(folder, role) {
  return ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${role}.cpuprofile`, '--cpu-prof-interval=500'];
}

/** The same drivers, started with a profiler: a copy of the manifest with another command. */
function profiledPlugins({ pipeline, plugins, profile, home }) {
  const folders = {
    source: plugins.source ?? join(root, 'drivers', pipeline.source.kind, 'source'),
    sink: plugins.sink ?? join(root, 'drivers', pipeline.sink.type, 'sink'),
  };
  return Object.fromEntries(
    Object.entries(folders).map(([role, original]) => {
      const folder = join(home, `profiled-${role}`);
      const manifest = parse(readFileSync(join(original, 'plugin.yaml'), 'utf8'));
      const [node, script, ...rest] = manifest.command;
      mkdirSync(folder, { recursive: true });
      cpSync(join(original, 'config.schema.json'), join(folder, 'config.schema.json'));
      const command = [node, ...cpuProfile(profile, role), join(original, script), ...rest];
      writeFileSync(join(folder, 'plugin.yaml'), stringify({ ...manifest, command }));
      return [role, folder];
    }),
  );
}
