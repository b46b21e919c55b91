import { type Schema, Table, tableFromIPC, tableToIPC } from 'apache-arrow';
import { Buffer as BufferStruct } from 'apache-arrow/fb/buffer';
import { FieldNode } from 'apache-arrow/fb/field-node';
import { Message } from 'apache-arrow/fb/message';
import { MessageHeader } from 'apache-arrow/fb/message-header';
import { MetadataVersion } from 'apache-arrow/fb/metadata-version';
import { RecordBatch } from 'apache-arrow/fb/record-batch';
import { Builder, ByteBuffer } from 'flatbuffers';
import { UrutauError } from './urutau-error.ts';

/** The layout of a record batch's body: one node per field in depth-first order, one entry per buffer. */
export interface BatchLayout {
  /** Rows of the batch. */
  length: number;
  nodes: readonly { length: number; nullCount: number }[];
  buffers: readonly { offset: number; length: number }[];
  bodyLength: number;
}

const CONTINUATION = 0xffffffff;

/** The IPC schema message without its prefix, as it goes into FlightData.data_header. */
export function encodeSchemaHeader(schema: Schema): Uint8Array {
  return withoutPrefix(encodeSchema(schema));
}

/** The encapsulated IPC schema message, as it goes into FlightInfo.schema and into `urutau.ensure`. */
export function encodeSchema(schema: Schema): Uint8Array {
  const stream = tableToIPC(new Table(schema), 'stream');
  const length = new DataView(stream.buffer, stream.byteOffset).getInt32(4, true);
  return stream.slice(0, 8 + length);
}

/** Reads an encapsulated schema message, also one from before the continuation marker was added to the format. */
export function decodeSchema(message: Uint8Array): Schema {
  try {
    return tableFromIPC(withEnd(withPrefix(withoutPrefix(message)))).schema;
  } catch (cause) {
    throw new UrutauError('protocol-violation', 'a schema that was received is not an Arrow IPC schema message', {
      cause,
    });
  }
}

export function decodeSchemaHeader(header: Uint8Array): Schema {
  return decodeSchema(withPrefix(header));
}

export function isSchemaHeader(header: Uint8Array): boolean {
  return headerType(header) === MessageHeader.Schema;
}

export function isRecordBatchHeader(header: Uint8Array): boolean {
  return headerType(header) === MessageHeader.RecordBatch;
}

function headerType(header: Uint8Array): MessageHeader {
  return Message.getRootAsMessage(new ByteBuffer(header)).headerType();
}

/** The IPC record-batch message without its prefix. Buffers are described as given; nothing is compressed. */
export function encodeBatchHeader({ length, nodes, buffers, bodyLength }: BatchLayout): Uint8Array {
  const builder = new Builder(64 + 16 * (nodes.length + buffers.length));
  RecordBatch.startNodesVector(builder, nodes.length);
  for (let i = nodes.length - 1; i >= 0; i--) {
    FieldNode.createFieldNode(builder, BigInt(nodes[i]!.length), BigInt(nodes[i]!.nullCount));
  }
  const nodesAt = builder.endVector();
  RecordBatch.startBuffersVector(builder, buffers.length);
  for (let i = buffers.length - 1; i >= 0; i--) {
    BufferStruct.createBuffer(builder, BigInt(buffers[i]!.offset), BigInt(buffers[i]!.length));
  }
  const buffersAt = builder.endVector();
  RecordBatch.startRecordBatch(builder);
  RecordBatch.addLength(builder, BigInt(length));
  RecordBatch.addNodes(builder, nodesAt);
  RecordBatch.addBuffers(builder, buffersAt);
  const batchAt = RecordBatch.endRecordBatch(builder);
  Message.startMessage(builder);
  Message.addVersion(builder, MetadataVersion.V5);
  Message.addHeaderType(builder, MessageHeader.RecordBatch);
  Message.addHeader(builder, batchAt);
  Message.addBodyLength(builder, BigInt(bodyLength));
  builder.finish(Message.endMessage(builder));
  return padTo8(builder.asUint8Array());
}

export function decodeBatchHeader(header: Uint8Array): BatchLayout {
  const message = Message.getRootAsMessage(new ByteBuffer(header));
  if (message.headerType() !== MessageHeader.RecordBatch) {
    throw new UrutauError('protocol-violation', 'expected a record batch, and another IPC message came');
  }
  const batch: RecordBatch = message.header(new RecordBatch())!;
  if (batch.compression() !== null) {
    throw new UrutauError('protocol-violation', 'the body of a batch is compressed, which was not agreed (TYP-3)');
  }
  const nodes = Array.from({ length: batch.nodesLength() }, (_, i) => {
    const node = batch.nodes(i)!;
    return { length: Number(node.length()), nullCount: Number(node.nullCount()) };
  });
  const buffers = Array.from({ length: batch.buffersLength() }, (_, i) => {
    const buffer = batch.buffers(i)!;
    return { offset: Number(buffer.offset()), length: Number(buffer.length()) };
  });
  return { length: Number(batch.length()), nodes, buffers, bodyLength: Number(message.bodyLength()) };
}

/** Schema, one batch and the end as one IPC stream: for readers that want whole streams. */
export function asIpcStream(schemaHeader: Uint8Array, batchHeader: Uint8Array, body: Uint8Array): Uint8Array {
  return withEnd(Buffer.concat([withPrefix(schemaHeader), withPrefix(batchHeader), body]));
}

/** Takes apart what `asIpcStream` put together. */
export function fromIpcStream(stream: Uint8Array): { schemaHeader: Uint8Array; header: Uint8Array; body: Uint8Array } {
  const schemaHeader = withoutPrefix(stream);
  const rest = stream.subarray(8 + schemaHeader.length);
  if (rest.length < 8 || !isSchemaHeader(schemaHeader)) {
    throw new UrutauError('protocol-violation', 'expected an Arrow IPC stream of a schema and one batch');
  }
  const header = withoutPrefix(rest);
  return { schemaHeader, header, body: rest.subarray(8 + header.length, -8) };
}

function withPrefix(header: Uint8Array): Uint8Array {
  const padded = padTo8(header);
  const out = new Uint8Array(8 + padded.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, CONTINUATION, true);
  view.setInt32(4, padded.length, true);
  out.set(padded, 8);
  return out;
}

function withoutPrefix(message: Uint8Array): Uint8Array {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  if (message.length >= 8 && view.getUint32(0, true) === CONTINUATION) {
    return message.subarray(8, 8 + view.getInt32(4, true));
  }
  if (message.length >= 4 && view.getInt32(0, true) === message.length - 4) return message.subarray(4);
  return message;
}

function withEnd(stream: Uint8Array): Uint8Array {
  const out = new Uint8Array(stream.length + 8);
  out.set(stream);
  new DataView(out.buffer).setUint32(stream.length, CONTINUATION, true);
  return out;
}

function padTo8(bytes: Uint8Array): Uint8Array {
  if (bytes.length % 8 === 0) return bytes;
  const out = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
  out.set(bytes);
  return out;
}
