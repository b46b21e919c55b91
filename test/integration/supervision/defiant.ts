import { spawn } from 'node:child_process';

/**
 * Makes this process outlive every request to end: shutdown, SIGTERM, the end of its standard input, missing heartbeats.
 * It leaves children behind, one in its group and one in a session of its own, which outlive SIGTERM too.
 */
export function defiant(): void {
  process.exit = (() => {}) as unknown as typeof process.exit;
  setInterval(() => {}, 60_000);
  const outlives = 'trap "" TERM HUP INT; exec sleep 600';
  for (const detached of [false, true]) spawn('/bin/sh', ['-c', outlives], { detached, stdio: 'ignore' }).unref();
}
