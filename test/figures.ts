import { appendFileSync, mkdirSync } from 'node:fs';
import { resolve } from 'node:path';

const FOLDER = resolve(import.meta.dirname, '../.cache');

/** Keeps a figure that `npm run verify` prints at its end: what was shown, and how much of it. */
export function figure(what: string, text: string): void {
  mkdirSync(FOLDER, { recursive: true });
  appendFileSync(resolve(FOLDER, 'figures.jsonl'), `${JSON.stringify({ what, text })}\n`);
}
