import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { HostMetrics } from '../../../../host/observe/registry.ts';
import { scraper } from '../../../../host/observe/scraper.ts';
import { serveObservation } from '../../../../host/observe/server.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';
import { heldDriver, runningPipeline } from './status-of-a-pipeline.ts';

const servers: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

test('/metrics answers OpenMetrics of the host and its drivers, and complains once of what a driver got wrong', async () => {
  const log = new RecordingLog();
  const drivers = { source: 'postgres', sink: 'stdout' };
  const scrape = scraper({
    host: new HostMetrics({ status: () => runningPipeline, drivers, wallMs: Date.now }),
    ofDrivers: {
      texts: async () => [
        { role: 'source', text: 'reads 3\n' },
        { role: 'sink', text: 'what?' },
      ],
    },
    drivers,
    log,
  });
  const url = await served({ scrape });

  await fetch(`${url}/metrics`);
  const response = await fetch(`${url}/metrics`);

  expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  const body = await response.text();
  expect(body).toContain('urutau_sessions_total 2\n');
  expect(body).toContain('reads{driver="postgres",role="source"} 3\n');
  expect(body.endsWith('\n# EOF\n')).toBe(true);
  expect(log.lines).toMatchObject([
    { level: 'warn', fields: { problem: 'sink: line 1: expected a sample; came "what?"' } },
  ]);
});

test('/healthz answers while the process lives, /statusz with the status', async () => {
  const url = await served({});

  expect(await got(`${url}/healthz`)).toEqual([200, { status: 'alive' }]);
  expect(await got(`${url}/statusz?pretty`)).toEqual([200, runningPipeline]);
});

test('/readyz is 200 only while both drivers are ready and a session carries the tables', async () => {
  const ready = await served({});
  const without = await served({ pipeline: { status: () => runningPipeline, ready: false } });
  const down = await served({
    pipeline: {
      status: () => ({ ...runningPipeline, source: { ...heldDriver, nextStartAtMs: 60_000 } }),
      ready: false,
    },
  });

  expect(await got(`${ready}/readyz`)).toEqual([200, { ready: true, reasons: [] }]);
  expect(await got(`${without}/readyz`)).toEqual([
    503,
    { ready: false, reasons: ['no session carries the tables yet'] },
  ]);
  expect(await got(`${down}/readyz`)).toEqual([
    503,
    {
      ready: false,
      reasons: ['the source driver is held until 1970-01-01T00:01:00.000Z: source driver postgres exited with 1'],
    },
  ]);
});

test('what is not served is answered as JSON too', async () => {
  const url = await served({});

  const paths = ['/metrics', '/healthz', '/readyz', '/statusz'];
  expect(await got(`${url}/constructor`)).toEqual([404, { message: 'nothing is served here', paths }]);
  expect(await got(`${url}/statusz`, { method: 'POST' })).toEqual([405, { message: '/statusz is only read' }]);
  expect((await fetch(`${url}/statusz`, { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD');
  expect((await fetch(`${url}/healthz`, { method: 'HEAD' })).status).toBe(200);
});

test('a scrape that fails is a 500, and the next request is answered', async () => {
  const log = new RecordingLog();
  const url = await served({ scrape: () => Promise.reject(new Error('out of ink')), log });

  const [status, body] = await got(`${url}/metrics`);

  expect([status, body]).toEqual([500, expect.objectContaining({ code: 'internal', message: 'out of ink' })]);
  expect(log.lines).toMatchObject([{ level: 'error', fields: { path: '/metrics', problem: 'out of ink' } }]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test('bytes that are no HTTP are answered with 400', async () => {
  const { hostname, port } = new URL(await served({}));
  const socket = connect(Number(port), hostname);
  socket.end('hello\r\n\r\n');

  expect(await text(socket)).toMatch(/^HTTP\/1.1 400 /);
});

test('without a host it listens on loopback, and it says which port it took', async () => {
  const server = await serveObservation({ ...defaults(), address: ':0' });
  servers.push(server);

  expect(server.address).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
});

test('closing ends open connections and frees the port', async () => {
  const server = await serveObservation(defaults());
  const { port } = new URL(`http://${server.address}`);
  const idle = connect(Number(port), '127.0.0.1');
  await once(idle, 'connect');
  idle.resume();

  await server.close();

  servers.push(await serveObservation({ ...defaults(), address: `127.0.0.1:${port}` }));
});

test.each(['nonsense', '127.0.0.1', '127.0.0.1:65536', '::1:80', 'http://127.0.0.1:80'])(
  'the address %s is refused with an example of a right one',
  async (address) => {
    await expect(serveObservation({ ...defaults(), address })).rejects.toMatchObject({
      code: 'config-invalid',
      message: `--metrics-addr: expected HOST:PORT; came "${address}"`,
      remedy: 'Write it as 127.0.0.1:9187; port 0 takes any free one.',
    });
  },
);

test('an address in use is refused and named', async () => {
  const { host } = new URL(await served({}));

  await expect(serveObservation({ ...defaults(), address: host })).rejects.toMatchObject({
    code: 'config-invalid',
    message: `--metrics-addr: cannot listen on ${host}: something else listens there`,
  });
});

function defaults(): Parameters<typeof serveObservation>[0] {
  return {
    address: '127.0.0.1:0',
    pipeline: { status: () => runningPipeline, ready: true },
    scrape: async () => '# EOF\n',
    log: new RecordingLog(),
  };
}

async function served(parts: Partial<Parameters<typeof serveObservation>[0]>): Promise<string> {
  const server = await serveObservation({ ...defaults(), ...parts });
  servers.push(server);
  return `http://${server.address}`;
}

async function got(url: string, init?: RequestInit): Promise<[number, unknown]> {
  const response = await fetch(url, init);
  return [response.status, await response.json()];
}
