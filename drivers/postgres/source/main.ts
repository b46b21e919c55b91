import { defineSource, serve } from '@urutau/sdk';
import { systemClock } from './clock.ts';
import { sourceConfig } from './config.ts';
import { PostgresSource } from './postgres-source.ts';

serve(
  defineSource({
    name: 'postgres',
    version: '0.1.0',
    config: sourceConfig,
    start: async ({ config, log }) => new PostgresSource({ config, log, clock: systemClock }),
  }),
);
