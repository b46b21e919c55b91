export * from '@urutau/contract';
export * from './columns/builders.ts';
export { ChangeBatchBuilder, type EncodedBatch, encodeColumns, type Op } from './columns/change-batch-builder.ts';
export { ChangeBatch } from './columns/change-batch-reader.ts';
export { bytesAt, type Column, isNull, readColumns } from './columns/readers.ts';
export { zeros } from './columns/zeros.ts';
export * from './define.ts';
export type { Log, LogLevel } from './log.ts';
export { serve } from './serve.ts';
