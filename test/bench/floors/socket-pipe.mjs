// Three processes and two unix sockets, with nothing in between: what the machine can carry.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '../end-with-us.mjs';

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

/** Sends `bodies` bodies from one process through a second into a third. */
export async function socketPipe({ folder, bodyBytes, bodies }) {
  const [first, second] = [join(folder, 'first.sock'), join(folder, 'second.sock')];
  for (const path of [first, second]) rmSync(path, { force: true });
  const sink = start('sink', second);
  await sink.ready;
  const middle = start('middle', first, second);
  await middle.ready;
  const source = start('source', first, bodyBytes, bodies);
  const [sent, relayed, received] = await Promise.all([source.report, middle.report, sink.report]);
  if (received.bytes !== bodyBytes * bodies)
    throw new Error(`the pipe carried ${received.bytes} bytes of ${bodyBytes * bodies}`);
  return {
    bytes: received.bytes,
    seconds: (received.lastMs - received.firstMs) / 1000,
    processes: [sent, relayed, received].map(({ role, cpuSeconds, peakMemoryBytes }) => ({
      role,
      cpuSeconds,
      peakMemoryBytes,
    })),
  };
}

function start(...args) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithUs(child);
  let text = '';
  let isReady;
  const ready = new Promise((done) => (isReady = done));
  const report = new Promise((done, fail) => {
    child.stdout.setEncoding('utf8').on('data', (more) => {
      text += more;
      if (text.startsWith('ready\n')) isReady();
    });
    child.once('error', fail);
    child.once('close', (code) =>
      code === 0 ? done(JSON.parse(text.replace('ready\n', ''))) : fail(new Error(`${args[0]} ended with ${code}`)),
    );
  });
  return { ready, report };
}

async function main() {
  const [role, ...args] = process.argv.slice(2);
  const counts = await { source, middle, sink }[role](...args);
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMemoryBytes: maxRSS * 1024 };
  console.log(JSON.stringify({ role, ...usage, ...counts }));
  process.exit(0);
}

async function source(path, bodyBytes, bodies) {
  const socket = connect(path);
  const body = Buffer.alloc(Number(bodyBytes), 7);
  for (let sent = 0; sent < Number(bodies); sent++) {
    if (!socket.write(body)) await new Promise((drained) => socket.once('drain', drained));
  }
  await new Promise((done) => socket.end(done));
}

async function middle(listenPath, nextPath) {
  const incoming = await accept(listenPath);
  const next = connect(nextPath);
  incoming.pipe(next);
  await new Promise((done) => next.once('finish', done));
}

async function sink(listenPath) {
  const incoming = await accept(listenPath);
  let [bytes, firstMs] = [0, 0];
  for await (const chunk of incoming) {
    if (bytes === 0) firstMs = performance.now();
    bytes += chunk.length;
  }
  return { bytes, firstMs, lastMs: performance.now() };
}

async function accept(path) {
  const server = createServer();
  await new Promise((done) => server.listen(path, done));
  console.log('ready');
  const socket = await new Promise((done) => server.once('connection', done));
  server.close();
  return socket;
}
