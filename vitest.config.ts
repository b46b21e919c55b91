import { defineConfig } from 'vitest/config';

const shared = { resolve: { conditions: ['urutau-source'] }, ssr: { resolve: { conditions: ['urutau-source'] } } };

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/*.test.ts'],
          testTimeout: 30_000, // Some start processes, which takes its time on a busy machine.
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: 'test/services/global-setup.ts',
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
      {
        ...shared,
        test: {
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          globalSetup: 'test/services/global-setup.ts',
          testTimeout: 3_600_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});
