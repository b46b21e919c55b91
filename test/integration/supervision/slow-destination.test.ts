import { expect, test } from 'vitest';
import { figure } from '../../figures.ts';
import { slowDestination } from './slow-destination.ts';

test('against a sink that takes 1 MB/s every process stays within the memory that is promised for it', async () => {
  const { peaks, stoppedMs } = await slowDestination({ seconds: 20, stop: '1s' });

  expect(stoppedMs).toBeLessThan(4_000);
  figure('memory, 20 s of a sink that takes 1 MB/s', peaks);
});
