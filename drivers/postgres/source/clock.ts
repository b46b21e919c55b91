/** Time as the source uses it; another one can be given in its place. */
export interface Clock {
  /** Milliseconds that only grow. */
  now(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Runs `work` after a while, or again and again; the answer stops it. A timer never keeps the process alive. */
  after(delayMs: number, work: () => void): () => void;
  every(intervalMs: number, work: () => void): () => void;
  sleep(delayMs: number): Promise<void>;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs).unref();
    return () => clearTimeout(timer);
  },
  every(intervalMs, work) {
    const timer = setInterval(work, intervalMs).unref();
    return () => clearInterval(timer);
  },
  sleep: (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs)),
};
