import { arrowTypeOf, type TableShape } from '@urutau/contract';
import { Field } from 'apache-arrow';

/** One nullable column, so that rows need no values. */
export const SHAPE: TableShape = {
  fields: [new Field('note', arrowTypeOf('string'), true)],
  primaryKey: ['note'],
  before: 'none',
};
