import { defineSink, serve } from '@urutau/sdk';
import { sinkConfig } from './config.ts';
import { PostgresSink } from './sink.ts';

serve(
  defineSink({
    name: 'postgres',
    version: '0.1.0',
    config: sinkConfig,
    start: async ({ config }) => new PostgresSink(config),
  }),
);
