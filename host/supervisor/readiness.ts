import type { Readable } from 'node:stream';
import { LIMIT, PROTOCOL_VERSION } from '@urutau/contract';

export type Transport = 'unix' | 'tcp';

export type FirstLine =
  | { readonly kind: 'line'; readonly text: string }
  /** More than a readiness line may hold, without a newline. */
  | { readonly kind: 'too-long'; readonly text: string }
  /** The stream ended before a newline. */
  | { readonly kind: 'ended'; readonly text: string };

export type Readiness =
  | { readonly kind: 'ready'; readonly port: number | null }
  | { readonly kind: 'refused'; readonly problem: string };

/** Takes the first line off `stdout`; whatever follows goes to `rest`, for life. */
export function takeFirstLine(stdout: Readable, rest: (chunk: Buffer) => void): Promise<FirstLine> {
  return new Promise((resolve) => {
    let head: Buffer | null = Buffer.alloc(0);
    const decide = (line: FirstLine) => {
      head = null;
      resolve(line);
    };
    stdout.on('data', (chunk: Buffer) => {
      if (head === null) {
        rest(chunk);
        return;
      }
      head = Buffer.concat([head, chunk]);
      const newlineAt = head.indexOf(0x0a);
      if (newlineAt >= 0 && newlineAt < LIMIT.readinessLineBytesMax) {
        const after = head.subarray(newlineAt + 1);
        decide({ kind: 'line', text: head.toString('utf8', 0, newlineAt) });
        if (after.length > 0) rest(after);
      } else if (head.length >= LIMIT.readinessLineBytesMax) {
        const all = head;
        decide({ kind: 'too-long', text: all.toString('utf8', 0, LIMIT.readinessLineBytesMax) });
        rest(all);
      }
    });
    stdout.once('close', () => {
      if (head !== null) decide({ kind: 'ended', text: head.toString() });
    });
  });
}

/** Reads the readiness line; a refusal says what was expected and what came. */
export function readReadiness(line: string, transport: Transport): Readiness {
  const message = parseObject(line);
  if (message === null) return refused(`the first line on its stdout is not the readiness line but ${excerpt(line)}`);
  const { ready, protocolVersion, pid, port } = message;
  if (ready !== true) return refused(`its readiness line must say "ready":true, but it is ${excerpt(line)}`);
  if (!isWhole(protocolVersion, 1, PROTOCOL_VERSION)) {
    return refused(`it speaks protocol version ${show(protocolVersion)}; this host speaks ${versions()}`);
  }
  if (pid !== undefined && !isWhole(pid, 1, 2 ** 32)) {
    return refused(`its readiness line has pid ${show(pid)}; a process id or nothing was expected`);
  }
  switch (transport) {
    case 'unix':
      return port === undefined
        ? { kind: 'ready', port: null }
        : refused(`its readiness line names port ${show(port)}, but it was told to listen on a unix socket`);
    case 'tcp':
      return isWhole(port, 1, 65_535)
        ? { kind: 'ready', port }
        : refused(`its readiness line must name the port that it listens on (1–65535); it has ${show(port)}`);
  }
}

function parseObject(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function refused(problem: string): Readiness {
  return { kind: 'refused', problem };
}

/** The start of a text, quoted. */
export function excerpt(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}

function isWhole(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

function show(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value).slice(0, 200);
}

function versions(): string {
  return PROTOCOL_VERSION === 1 ? '1' : `1 to ${PROTOCOL_VERSION}`;
}
