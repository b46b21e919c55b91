import { expect, test } from 'vitest';
import { figure } from '../figures.ts';
import { slowDestination } from '../integration/supervision/slow-destination.ts';

test('against a sink that takes 1 MB/s for ten minutes memory stays within its figures, and a stop within the default time', async () => {
  const { peaks, stoppedMs, bytes } = await slowDestination({ seconds: 600, stop: '15s' });

  expect(bytes).toBeGreaterThan(300e6);
  // Twice 15 s and two more: what is on its way would take a minute.
  expect(stoppedMs).toBeLessThan(32_000);
  figure('memory, 10 min of a sink that takes 1 MB/s', peaks);
});
