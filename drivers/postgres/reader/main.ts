import { defineSource, serve } from '@urutau/sdk';
import { sinkConfig } from '../sink/config.ts';
import { systemClock } from '../source/clock.ts';
import { PostgresReader } from './postgres-reader.ts';

serve(
  defineSource({
    name: 'postgres',
    version: '0.1.0',
    config: sinkConfig,
    start: async ({ config }) => new PostgresReader({ config, clock: systemClock }),
  }),
);
