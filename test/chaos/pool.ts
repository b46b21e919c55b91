/** Begins the work of every item in order, `atOnce` at a time; answers a promise for each. */
export function inPool<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result>[] {
  const lanes: Promise<unknown>[] = Array.from({ length: atOnce }, () => Promise.resolve());
  return items.map((item, index) => {
    const lane = index % atOnce;
    const result = lanes[lane]!.then(() => work(item));
    lanes[lane] = result.catch(() => {}); // Whoever awaits this result is told; the lane goes on.
    return result;
  });
}
