/** The way from the top of a file to a field: keys of maps and indexes of lists. */
export type Path = readonly (string | number)[];

/** `tables[0].enrich[1].as["customers.name"]` */
export function renderPath(path: Path): string {
  return path.map((step, index) => renderStep(step, index === 0)).join('');
}

/** The value at `path`, or undefined where the way ends early. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined;
    current = (current as Record<string | number, unknown>)[step];
  }
  return current;
}

/** A copy in which the field at `path` is `replacement`; an item of a list keeps its place. */
export function replaced(value: unknown, path: Path, replacement: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return replacement;
  if (typeof value !== 'object' || value === null) return value;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
  const field = replaced(copy[step], rest, replacement);
  if (field === undefined && !Array.isArray(copy)) delete copy[step];
  else copy[step] = field;
  return copy;
}

function renderStep(step: string | number, first: boolean): string {
  if (typeof step === 'number') return `[${step}]`;
  if (!/^[A-Za-z_][\w-]*$/.test(step)) return `[${JSON.stringify(step)}]`;
  return first ? step : `.${step}`;
}
