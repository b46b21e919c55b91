import { afterAll, afterEach } from 'vitest';
import { figure } from '../../figures.ts';
import { CASES, type Case, nameOf } from './cases.ts';

/** Leaves a figure of how many cases of a group its file has shown. */
export function figureOf(group: Case['group']): void {
  const names = new Set(CASES.filter((known) => known.group === group).map(nameOf));
  const shown = new Set<string>();
  afterEach(({ task }) => {
    if (names.has(task.name) && task.result?.state !== 'fail') shown.add(task.name);
  });
  afterAll(() => {
    figure(`drivers that misbehave, ${group}`, `${shown.size} of ${names.size} as documented`);
  });
}
