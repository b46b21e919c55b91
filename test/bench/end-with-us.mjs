const running = new Set();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Kills the child when this process exits before it. */
export function endWithUs(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
}
