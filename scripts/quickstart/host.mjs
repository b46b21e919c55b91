import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const STOP_MS_MAX = 20_000;
const LAST_LINES = 15;

/** The bundled host as a process, with its log in a file. A group of its own: Ctrl-C reaches it through us, once. */
export function startHost({ root, pipelineFile, folder, metricsPort }) {
  const log = join(folder, 'host.log');
  const output = openSync(log, 'w');
  const metrics = metricsPort === undefined ? [] : ['--metrics-addr', `127.0.0.1:${metricsPort}`];
  const args = [join(root, 'host/dist/main.js'), 'run', '-f', pipelineFile, ...metrics];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', output, output],
    detached: process.platform !== 'win32',
  });
  closeSync(output);
  let end;
  const ended = new Promise((done) => {
    child.once('error', (error) => done(error.message));
    child.once('exit', (code, signal) => done(signal ?? code));
  }).then((how) => {
    end = how;
    return how;
  });

  function lastWords() {
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-LAST_LINES);
    return `the last lines of ${relative(process.cwd(), log)}:\n${lines.map((line) => `   ${line}`).join('\n')}`;
  }

  return {
    lastWords,
    throwIfEnded() {
      if (end !== undefined) throw new Error(`the host ended with ${end}; ${lastWords()}`);
    },
    /** Lets it finish what is under way. Throws when it does not end, or not well. */
    async stop() {
      if (end !== undefined) return;
      child.kill('SIGINT');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
      const how = await ended;
      clearTimeout(timer);
      if (how === 'SIGKILL') throw new Error(`the host did not end within ${STOP_MS_MAX / 1000} s; ${lastWords()}`);
      if (how !== 0) throw new Error(`the host ended with ${how}; ${lastWords()}`);
    },
  };
}
