import { type Path, renderPath, valueAt } from './path.ts';
import { isSecretField, isSecretText, MASK } from './secrets.ts';

/** Text for a message about the value of a field. */
export type Show = (path: Path) => string;

/**
 * Shows values of `value` for messages: secrets as `***`, blocks by their kind, and what came from the environment or a
 * file as it was written (`written`, by rendered path).
 */
export function showing(value: unknown, written: ReadonlyMap<string, string>): Show {
  return (path) => {
    const shown = valueAt(value, path);
    if (shown === undefined) return 'nothing';
    if (isSecretField(path)) return MASK;
    return describe(written.get(renderPath(path)) ?? shown);
  };
}

const SHOWN_MAX = 80;

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  if (typeof value !== 'string') return String(value);
  if (isSecretText(value)) return MASK;
  return JSON.stringify(value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value);
}
