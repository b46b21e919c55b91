import { writeSync } from 'node:fs';
import { asUrutauError, ENV, LIMIT, PROTOCOL_VERSION, UrutauError } from '@urutau/contract';
import type { DriverDefinition, SinkDriver, SourceDriver } from './define.ts';
import { type Environment, readEnvironment } from './environment.ts';
import { armFaultPoints, faultPoint } from './fault-point.ts';
import { sinkActions, sourceActions } from './flight/actions.ts';
import { createFlightServer, type FlightServer } from './flight/server.ts';
import { WriteStreams } from './flight/write-streams.ts';
import { createLog, type Log } from './log.ts';
import { Watchdog } from './watchdog.ts';

const EXIT_CRASHED = 1;
const EXIT_CONFIG = 2;
/** For answers in flight to reach the host before the process ends. */
const ANSWERS_MS = 250;

/**
 * Runs a driver for the life of its process: environment, readiness, the Flight service, watchdog, lifeline, and one
 * path for every ordinary end. Exits 2 with a clear message on stderr when it was started wrongly (EXIT-1).
 */
export function serve<Config>(definition: DriverDefinition<Config>): void {
  run(definition).catch((error) => {
    const { code, message, remedy } = asUrutauError(error);
    writeSync(2, `${definition.name} ${definition.role}: ${message}\n${remedy}\n`);
    process.exit(code === 'config-invalid' ? EXIT_CONFIG : EXIT_CRASHED);
  });
}

async function run<Config>(definition: DriverDefinition<Config>): Promise<void> {
  const startedAt = performance.now();
  const environment = readEnvironment(process.env, definition.role);
  armFaultPoints(process.env);
  delete process.env[ENV.token]; // LIFE-5: children of a driver never see the token.
  if (environment.lifeline) watchLifeline(); // Before the start, which may wait long for a backend.
  // RDY-4: nothing comes before the readiness line on stdout, so what `start` logs goes to stderr.
  let output: NodeJS.WriteStream = process.stderr;
  const log = createLog(
    (line) => output.write(line),
    () => new Date(),
  );
  const driver = await definition.start({
    config: checkedConfig(definition, environment.config),
    log,
    pluginDir: environment.pluginDir,
    hostStdout: environment.hostStdout,
  });
  const end = endsOnce(definition.role, driver, log);
  const watchdog = new Watchdog({
    now: () => performance.now(),
    silent: () => crash(`no heartbeat for ${LIMIT.watchdogMs / 1000} s: the host is gone`),
  });
  const life = {
    heartbeat: () => watchdog.heard(),
    // The answer must leave before the server refuses further calls.
    shutdown: () => void setImmediate(() => end(server)),
    uptimeSec: () => Math.floor((performance.now() - startedAt) / 1000),
  };
  const server = serverFor(definition, driver, life, environment.token);
  process.on('SIGTERM', () => end(server));
  process.on('SIGINT', () => end(server));
  const port = await server.listen(environment.address);
  faultPoint(`${definition.role}.listening`);
  announce(environment, port);
  output = process.stdout;
}

function serverFor<Config>(
  definition: DriverDefinition<Config>,
  driver: SourceDriver | SinkDriver,
  life: Parameters<typeof sourceActions>[2],
  token: string,
): FlightServer {
  if (definition.role === 'source') {
    const source = driver as SourceDriver;
    return createFlightServer({ role: 'source', driver: source }, sourceActions(source, definition, life), token);
  }
  const sink = driver as SinkDriver;
  const streams = new WriteStreams();
  return createFlightServer(
    { role: 'sink', driver: sink, streams },
    sinkActions(sink, definition, life, streams),
    token,
  );
}

function checkedConfig<Config>(definition: DriverDefinition<Config>, config: unknown): Config {
  try {
    return definition.config.parse(config);
  } catch (error) {
    // Only paths and rules of the schema are told: a config value never leaves the driver (ENV-5).
    const issues = (error as { issues?: { path: PropertyKey[]; message: string }[] }).issues;
    const problems = issues?.map(({ path, message }) => `${path.map(String).join('.') || 'config'}: ${message}`);
    throw new UrutauError('config-invalid', problems?.join('; ') ?? 'the config does not fit the driver’s schema');
  }
}

/** RDY-1: one line, after the listener accepts, and nothing before it. */
function announce({ tcp }: Environment, port: number): void {
  const line = { ready: true, protocolVersion: PROTOCOL_VERSION, pid: process.pid, ...(tcp ? { port } : {}) };
  writeSync(1, `${JSON.stringify(line)}\n`);
}

/** LIFE-1: the host holds the other end of stdin; its end is the host's end. */
function watchLifeline(): void {
  process.stdin.on('end', () => crash('standard input ended: the host is gone'));
  process.stdin.on('error', () => crash('standard input broke: the host is gone'));
  process.stdin.resume();
}

function crash(why: string): never {
  writeSync(2, `${why}\n`);
  process.exit(EXIT_CRASHED);
}

/** EXIT-3: shutdown action, SIGTERM and SIGINT are one path, walked once. */
function endsOnce(
  role: 'source' | 'sink',
  driver: SourceDriver | SinkDriver,
  log: Log,
): (server: FlightServer) => void {
  let ending = false;
  return (server) => {
    if (ending) return;
    ending = true;
    faultPoint(`${role}.shutdown.asked`);
    setTimeout(() => process.exit(EXIT_CRASHED), LIMIT.stopMs - 1000).unref();
    // The answer to the shutdown itself is still on its way; endless streams are not waited for.
    const answered = Promise.race([server.close(), new Promise((resolve) => setTimeout(resolve, ANSWERS_MS))]);
    Promise.all([driver.close(), answered]).then(
      () => process.exit(0),
      (error) => {
        log.error('could not end in order', { error: asUrutauError(error).message });
        process.exit(EXIT_CRASHED);
      },
    );
  };
}
