const running = new Map();

process.on('exit', () => {
  for (const kill of running.values()) kill();
});

/** Kills the child when this process exits before it; `group` says that it leads a process group, which goes with it. */
export function endWithUs(child, { group = false } = {}) {
  running.set(child, () => (group ? signalGroup(child, 'SIGKILL') : child.kill('SIGKILL')));
  child.once('exit', () => running.delete(child));
}

/** To the child that leads a process group, and to all of the group. */
export function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // It ended meanwhile.
    if (error.code !== 'ESRCH') throw error;
  }
}
