import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One way to misbehave, what the host does about it and what it prints: what the tests expect, and the documentation shows. */
export interface Case {
  readonly group: 'start' | 'output' | 'life' | 'data path';
  /** In `test/fixtures/drivers`, or made by the test. */
  readonly program: string;
  /** Goes on "A driver that …". */
  readonly driver: string;
  /** Goes on after it. */
  readonly host: string;
  /** Empty where nothing is printed. `…` stands for what differs from run to run. */
  readonly prints: string;
  readonly remedy?: string;
}

export const CASES: readonly Case[] = JSON.parse(readFileSync(join(import.meta.dirname, 'cases.json'), 'utf8'));

/** The case of a program; a name that no case has is a mistake of the test. */
export function caseOf(program: string): Case {
  const found = CASES.find((known) => known.program === program);
  if (found === undefined) throw new Error(`there is no case of ${program} in cases.json`);
  return found;
}

/** A sentence, with the program that it is about. */
export function nameOf({ program, driver, host }: Case): string {
  return `a driver that ${driver} ${host} (${program})`;
}

/** The whole text, in which `…` is anything. */
export function pattern(text: string): RegExp {
  const literal = (part: string) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return new RegExp(`^${text.split('…').map(literal).join('.*')}$`, 's');
}
