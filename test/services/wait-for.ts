/** Polls until the answer is not null. What is waited for lives in other processes, which cannot call back. */
export async function waitFor<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | null>,
  context: () => string = () => '',
): Promise<T> {
  const untilMs = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (Date.now() > untilMs) throw new Error(`${what} did not come about within ${withinMs} ms\n${context()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
