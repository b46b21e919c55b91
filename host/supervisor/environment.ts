import { ENV, PROTOCOL_VERSION } from '@urutau/contract';

export interface DriverEnvironment {
  readonly role: 'source' | 'sink';
  readonly token: string;
  readonly configFile: string;
  readonly directory: string;
  /** Where to listen. */
  readonly listen: { readonly socket: string } | { readonly bind: string };
  readonly hostStdout: boolean;
  /** Names of the host's variables that the manifest asks for. */
  readonly passed: readonly string[];
  readonly host: Readonly<Record<string, string | undefined>>;
  /** A fault is played once: only the first process of a driver is told of it. */
  readonly playsFault: boolean;
}

const ALWAYS_PASSED = new Set(['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR']);

/** The driver's whole environment: an allow-list, so that the host's credentials do not leak into a driver. */
export function driverEnvironment(options: DriverEnvironment): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.host)) {
    const allowed =
      ALWAYS_PASSED.has(name) ||
      name.startsWith('LC_') ||
      options.passed.includes(name) ||
      (name === ENV.fault && options.playsFault);
    if (allowed && value !== undefined) environment[name] = value;
  }
  environment[ENV.stage] = options.role;
  environment[ENV.token] = options.token;
  environment[ENV.config] = options.configFile;
  environment[ENV.pluginDir] = options.directory;
  environment[ENV.protocolVersion] = String(PROTOCOL_VERSION);
  environment[ENV.lifeline] = 'stdin';
  if (options.hostStdout) environment[ENV.hostStdout] = '3';
  if ('socket' in options.listen) environment[ENV.socket] = options.listen.socket;
  else environment[ENV.bind] = options.listen.bind;
  return environment;
}
