import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { ENV, PROTOCOL_VERSION, UrutauError } from '@urutau/contract';

/** What the host tells a driver at its start (ENV-1), parsed once. */
export interface Environment {
  token: string;
  /** The parsed config file; not yet checked against the driver's schema. */
  config: unknown;
  pluginDir: string;
  /** As grpc-js takes it. */
  address: string;
  tcp: boolean;
  lifeline: boolean;
  hostStdout: number | null;
}

/** Throws `config-invalid` that names every variable that is missing or wrong; never a value. */
export function readEnvironment(env: NodeJS.ProcessEnv, role: 'source' | 'sink'): Environment {
  const problems: string[] = [];
  const required = (name: string): string => {
    const value = env[name];
    if (!value) problems.push(`${name} is not set`);
    return value ?? '';
  };
  const stage = required(ENV.stage);
  if (stage && stage !== role) problems.push(`${ENV.stage}: expected ${role}; came ${stage}`);
  const token = required(ENV.token);
  const configPath = required(ENV.config);
  if (configPath && !isAbsolute(configPath)) problems.push(`${ENV.config} is not an absolute path`);
  const pluginDir = required(ENV.pluginDir);
  checkVersion(required(ENV.protocolVersion), problems);
  const socket = env[ENV.socket];
  const bind = env[ENV.bind];
  if (Boolean(socket) === Boolean(bind)) problems.push(`expected exactly one of ${ENV.socket} and ${ENV.bind}`);
  if (bind && !isLoopback(bind)) problems.push(`${ENV.bind} is not a loopback address (LIFE-7)`);
  const config = problems.length === 0 ? readConfig(configPath, problems) : null;
  if (problems.length > 0) throw new UrutauError('config-invalid', problems.join('; '));
  return {
    token,
    config,
    pluginDir,
    address: socket ? `unix:${socket}` : bind!,
    tcp: !socket,
    lifeline: env[ENV.lifeline] === 'stdin',
    hostStdout: env[ENV.hostStdout] ? Number(env[ENV.hostStdout]) : null,
  };
}

function checkVersion(text: string, problems: string[]): void {
  if (text === '') return;
  const version = Number(text);
  if (!Number.isInteger(version)) problems.push(`${ENV.protocolVersion} is not an integer`);
  else if (version < PROTOCOL_VERSION) {
    problems.push(`this driver speaks protocol version ${PROTOCOL_VERSION}, the host at most ${version}`);
  }
}

function readConfig(path: string, problems: string[]): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    problems.push(`${ENV.config}: the file ${code ? `cannot be read (${code})` : 'is not JSON'}`);
    return null;
  }
}

function isLoopback(bind: string): boolean {
  const host = bind.slice(0, bind.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
