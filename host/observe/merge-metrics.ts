import { type Family, type Label, parseExposition, renderExposition, type Sample } from './openmetrics.ts';

export interface DriverExposition {
  role: 'source' | 'sink';
  driver: string;
  /** OpenMetrics text. */
  text: string;
}

/** What of a driver's metrics could not be passed on, and why. */
export interface LeftOut {
  role: 'source' | 'sink';
  problem: string;
}

/**
 * The host's metrics with those of its drivers behind them, each of these with the labels `driver` and `role`. A metric
 * of both drivers becomes one; a name of the host's stays the host's alone.
 */
export function mergeMetrics(own: string, drivers: readonly DriverExposition[]): { text: string; leftOut: LeftOut[] } {
  const ofHost = parseExposition(own);
  const taken = new Set(ofHost.map(({ name }) => name));
  const ofDrivers = new Map<string, Family>();
  const leftOut: LeftOut[] = [];
  for (const exposition of drivers) {
    const { role } = exposition;
    for (const family of familiesOf(exposition, (problem) => leftOut.push({ role, problem }))) {
      const present = ofDrivers.get(family.name);
      if (taken.has(family.name)) leftOut.push({ role, problem: `${family.name} is a metric of the host` });
      else if (present === undefined) ofDrivers.set(family.name, family);
      else if (present.type === family.type) present.samples.push(...family.samples);
      else
        leftOut.push({
          role,
          problem: `${family.name} is a ${present.type} of the other driver, not a ${family.type}`,
        });
    }
  }
  return { text: renderExposition([...ofHost, ...ofDrivers.values()]), leftOut };
}

function familiesOf(exposition: DriverExposition, problem: (text: string) => void): Family[] {
  try {
    return parseExposition(exposition.text).map((family) => ({
      ...family,
      samples: family.samples.map((sample) => labelled(sample, exposition)),
    }));
  } catch (error) {
    problem((error as Error).message);
    return [];
  }
}

function labelled(sample: Sample, { driver, role }: DriverExposition): Sample {
  const own: Label[] = [
    ['driver', driver.replace(/[\\"]/g, '\\$&')],
    ['role', role],
  ];
  // As a scraper does it: the driver's own label of that name is kept under another.
  const theirs = sample.labels.map(
    ([name, value]): Label => [name === 'driver' || name === 'role' ? `exported_${name}` : name, value],
  );
  return { ...sample, labels: [...own, ...theirs] };
}
