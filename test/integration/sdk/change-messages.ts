import {
  arrowTypeOf,
  type BytesBuilder,
  ChangeBatchBuilder,
  changeSchema,
  type Envelope,
  encodeSchemaHeader,
  type Int64Builder,
  type Op,
  type TableShape,
} from '@urutau/sdk';
import { Field } from 'apache-arrow';

export interface Change {
  op: Op;
  id: number;
  name?: string | null;
}

const SHAPE: TableShape = {
  fields: [new Field('id', arrowTypeOf('int64'), false), new Field('name', arrowTypeOf('string'), true)],
  primaryKey: ['id'],
  before: 'key',
};

/** The first message of a DoPut. */
export function putStart(table: string, stream?: number): object {
  return {
    flightDescriptor: { type: 'CMD', cmd: Buffer.from(JSON.stringify({ mode: 'write', table, stream })) },
    dataHeader: encodeSchemaHeader(changeSchema(SHAPE)),
  };
}

/** One batch of a DoPut; without an envelope it is as a host sends it to a base driver. */
export function putBatch(changes: Change[], envelope?: Envelope): object {
  const builder = new ChangeBatchBuilder(SHAPE);
  for (const [index, { op, id, name }] of changes.entries()) {
    if (op === 'd') (builder.openBefore()[0] as Int64Builder).appendNumber(id);
    else {
      (builder.after[0] as Int64Builder).appendNumber(id);
      if (typeof name === 'string') (builder.after[1] as BytesBuilder).appendString(name);
    }
    builder.close(op, Uint8Array.of(index), null);
  }
  const { header, body } = builder.finish();
  return {
    dataHeader: header,
    dataBody: Buffer.concat(body),
    ...(envelope ? { appMetadata: Buffer.from(JSON.stringify(envelope)) } : {}),
  };
}

/** A message without rows. */
export function putEvent(envelope: Envelope): object {
  return { appMetadata: Buffer.from(JSON.stringify(envelope)) };
}
