import type { DriverMetrics } from './driver-metrics.ts';
import type { Log } from './log.ts';
import { mergeMetrics } from './merge-metrics.ts';
import type { HostMetrics } from './registry.ts';

export interface ScraperOptions {
  host: Pick<HostMetrics, 'text'>;
  ofDrivers: Pick<DriverMetrics, 'texts'>;
  /** The drivers' names, by role. */
  drivers: Readonly<Record<'source' | 'sink', string>>;
  log: Log;
}

/** A function that answers one scrape: OpenMetrics text of the host and its drivers. */
export function scraper({ host, ofDrivers, drivers, log }: ScraperOptions): () => Promise<string> {
  let complained = '';
  return async () => {
    const [own, texts] = await Promise.all([host.text(), ofDrivers.texts()]);
    const expositions = texts.map(({ role, text }) => ({ role, driver: drivers[role], text }));
    const { text, leftOut } = mergeMetrics(own, expositions);
    const complaint = leftOut.map(({ role, problem }) => `${role}: ${problem}`).join('; ');
    // Once, not at every scrape.
    if (complaint !== complained && complaint !== '')
      log.warn('metrics of a driver are left out', { problem: complaint });
    complained = complaint;
    return text;
  };
}
