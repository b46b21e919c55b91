import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ENV } from '@urutau/contract';
import { onTestFinished } from 'vitest';
import { FlightClient } from './flight-client.ts';

export interface DriverOptions {
  role: 'source' | 'sink';
  program: string;
  config?: object;
  /** Variables to set, or with undefined to leave out. */
  env?: Record<string, string | undefined>;
  /** What the driver gets as file descriptor 3. */
  hostStdout?: 'pipe' | number;
  lifeline?: boolean;
}

/** A driver as its own process, as a host starts it. */
export interface DriverProcess {
  child: ChildProcess;
  socket: string;
  token: string;
  /** What it wrote to stderr so far. */
  stderr(): string;
  /** Resolves with `code 0` or `signal SIGKILL`. */
  exited: Promise<string>;
  /** The first line of stdout; rejects when the process ends without one. */
  readiness: Promise<string>;
}

/** Starts a driver; it is killed and its folder removed when the test is over. */
export function spawnDriver({
  role,
  program,
  config = {},
  env = {},
  hostStdout,
  lifeline,
}: DriverOptions): DriverProcess {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  const configFile = join(folder, 'config.json');
  const socket = join(folder, 's');
  const token = randomBytes(32).toString('base64');
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
  const variables = {
    PATH: process.env['PATH'],
    [ENV.stage]: role,
    [ENV.token]: token,
    [ENV.config]: configFile,
    [ENV.pluginDir]: folder,
    [ENV.protocolVersion]: '1',
    [ENV.socket]: socket,
    ...(lifeline ? { [ENV.lifeline]: 'stdin' } : {}),
    ...(hostStdout === undefined ? {} : { [ENV.hostStdout]: '3' }),
    ...env,
  };
  const stdio: StdioOptions = ['pipe', 'pipe', 'pipe', ...(hostStdout === undefined ? [] : [hostStdout])];
  const child = spawn(process.execPath, [program], { stdio, env: variables });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  let stderr = '';
  child.stderr!.on('data', (chunk) => {
    stderr += chunk;
  });
  const exited = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `code ${code}`));
  });
  const readiness = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout!).once('line', resolve);
    exited.then((how) => reject(new Error(`ended before it was ready: ${how}: ${stderr}`)));
  });
  readiness.catch(() => {});
  return { child, socket, token, stderr: () => stderr, exited, readiness };
}

/** Starts a driver and a stock client of it. */
export async function startDriver(options: DriverOptions): Promise<DriverProcess & { client: FlightClient }> {
  const driver = spawnDriver(options);
  await driver.readiness;
  const client = new FlightClient(`unix:${driver.socket}`, driver.token);
  onTestFinished(() => client.close());
  return { ...driver, client };
}

export function listens({ socket }: DriverProcess): boolean {
  return existsSync(socket);
}
