import { changeSchema, encodeSchemaHeader, type TableShape, UrutauError } from '@urutau/contract';
import { type Checkpoint, decodeCheckpoint, encodeCheckpoint } from '../../checkpoint/checkpoint.ts';
import { faultPoint } from '../../fault-point.ts';
import { CheckpointedStream, type StreamIdentity } from '../checkpointed-stream.ts';
import { refusedRows } from '../refusal.ts';
import type { SinkPort } from '../sink/port.ts';
import { superseded } from '../superseded.ts';
import { ensureRequest } from '../table/ensure-request.ts';
import type { TableSettings } from '../table/table.ts';
import type { DeadLetter } from './dead-letter.ts';
import type { DeadLetterBox } from './dead-letter-box.ts';
import { type Effect, effectBatch, effectsOf, shapeOf } from './effects.ts';
import { QuarantinedKeys } from './quarantined-keys.ts';

export interface ReplayOptions {
  table: TableSettings;
  sink: SinkPort;
  /** The source driver's name. */
  source: string;
  writer: string;
  run: string;
  /** The run whose checkpoint of the table was seen last. */
  seenRun: string | null;
  box: DeadLetterBox;
  /** The dead letters of this table, in any order, as they are stored now. */
  letters: () => AsyncIterable<DeadLetter>;
}

/** What a replay has done. */
export interface Replayed {
  /** Keys that are quarantined no more. */
  keys: number;
  /** Dead letters that were applied and are gone. */
  changes: number;
  /** Keys that the sink refuses still; their dead letters wait on. */
  refused: { key: string; code: string; reason: string }[];
}

/** So much is applied in one commit. More than that takes several, each of which frees the keys that it covers. */
const COMMIT_BYTES = 32 * 1024 * 1024;

/**
 * Applies the dead letters of a table that nobody carries meanwhile. What a key's dead letters amount to is the newest of
 * them, so that is what is written: together with the checkpoint that frees the key, in one commit. Dead letters go
 * only afterwards, and what no key counts any more goes too; so it may be cut short at any moment and be repeated.
 */
export async function replay(options: ReplayOptions): Promise<Replayed> {
  const checkpoint = await storedCheckpoint(options);
  const all = QuarantinedKeys.of(checkpoint ?? {});
  const applied = checkpoint === null ? none() : await applyAll(options, checkpoint, all);
  const changes = await sweep(options, { before: all, now: applied.keys });
  if (applied.refused.length > 0)
    await options.box.store(applied.refused.map(({ letter, code, reason }) => ({ ...letter, code, reason })));
  return {
    keys: all.size - applied.keys.size,
    changes,
    refused: applied.refused.map(({ key, code, reason }) => ({ key, code, reason })),
  };
}

/** Removes the dead letters whose ordinals are below `before`, of a table that may be carried meanwhile. */
export function removeOlder({ letters, box }: ReplayOptions, before: bigint): Promise<void> {
  return box.remove(async function* () {
    for await (const letter of letters()) if (letter.ordinal < before) yield letter;
  });
}

interface Applied {
  /** Those that are left. */
  keys: QuarantinedKeys;
  refused: { hash: string; key: string; letter: DeadLetter; code: string; reason: string }[];
}

function none(): Applied {
  return { keys: QuarantinedKeys.none(), refused: [] };
}

async function storedCheckpoint({ sink, table, run, seenRun }: ReplayOptions): Promise<Checkpoint | null> {
  const { target } = table;
  const stored = (await sink.checkpoints([target])).get(target) ?? null;
  if (stored instanceof UrutauError) throw stored;
  if (stored === null) return null;
  const checkpoint = decodeCheckpoint(stored, target);
  // Another host has taken the table over meanwhile, and it is not taken back.
  if (seenRun === run && checkpoint.run !== run) throw superseded(table.source, checkpoint.writer);
  return checkpoint;
}

async function applyAll(options: ReplayOptions, checkpoint: Checkpoint, all: QuarantinedKeys): Promise<Applied> {
  let state: Applied & { checkpoint: Checkpoint } = { keys: all.copy(), refused: [], checkpoint };
  const tried = new Set<string>();
  for (;;) {
    const { effects, isLast } = await newestEffects(options, all, tried);
    for (const shaped of byShape(effects)) state = await applyTogether(options, shaped, state);
    for (const { key } of effects) tried.add(key.hash);
    if (!isLast) continue;
    // A key without a dead letter has nothing that waits: its changes are still to come, or a person has removed them.
    const idle = all.hashes().filter((hash) => !tried.has(hash));
    // Without one too: from here on no other host sets aside what the sweep would take for void.
    return applyTogether(options, { shape: null, effects: [], free: idle }, state);
  }
}

/** Of each key that was not tried yet the newest effect, of as many keys as fit into one commit. */
async function newestEffects(
  { letters }: ReplayOptions,
  keys: QuarantinedKeys,
  tried: ReadonlySet<string>,
): Promise<{ effects: Effect[]; isLast: boolean }> {
  const newest = new Map<string, Effect>();
  const later = new Set<string>();
  let bytes = 0;
  for await (const letter of letters()) {
    for (const effect of effectsOf(letter)) {
      const { hash } = effect.key;
      if (tried.has(hash) || later.has(hash) || !keys.counts(hash, letter)) continue;
      const known = newest.get(hash);
      if (known && known.letter.ordinal > letter.ordinal) continue;
      bytes += letter.change.length - (known?.letter.change.length ?? 0);
      if (bytes > COMMIT_BYTES && newest.size > (known ? 1 : 0)) {
        bytes -= letter.change.length;
        newest.delete(hash);
        later.add(hash);
      } else newest.set(hash, effect);
    }
  }
  const effects = [...newest.values()].sort((a, b) => (a.letter.ordinal < b.letter.ordinal ? -1 : 1));
  return { effects, isLast: later.size === 0 };
}

interface Together {
  /** Null where there is nothing to write. */
  shape: TableShape | null;
  effects: Effect[];
  /** Keys that are freed by the same commit. */
  free: string[];
}

function byShape(effects: readonly Effect[]): Together[] {
  const groups = new Map<string, Together>();
  for (const effect of effects) {
    const shape = shapeOf(effect.letter);
    const name = Buffer.from(encodeSchemaHeader(changeSchema(shape))).toString('latin1');
    const group = groups.get(name) ?? { shape, effects: [], free: [] };
    group.effects.push(effect);
    group.free.push(effect.key.hash);
    groups.set(name, group);
  }
  return [...groups.values()];
}

/** One commit with the checkpoint that frees the keys; what the sink refuses is left out, and it is tried once more. */
async function applyTogether(
  options: ReplayOptions,
  { shape, effects, free }: Together,
  { keys, refused, checkpoint }: Applied & { checkpoint: Checkpoint },
): Promise<Applied & { checkpoint: Checkpoint }> {
  const { table, sink, source, writer, run } = options;
  const { offset, snapshot } = checkpoint;
  const position = { offset, snapshot };
  if (shape !== null) await sink.ensure?.(ensureRequest(table, shape, { writer, source }));
  let stored = encodeCheckpoint(checkpoint);
  let waiting = effects;
  const failed: Applied['refused'] = [];
  for (let number = checkpoint.stream + 1; ; number++) {
    const stream = new CheckpointedStream({
      table: table.target,
      sink: sink.open(table.target, number, shape ?? NO_ROWS),
      identity: { ...identityOf(checkpoint), run, stream: number },
      stored,
    });
    const sent = new Map<number, Effect>();
    try {
      await stream.commit(position, keys.stored());
      stored = stream.stored!;
      for (const effect of waiting) {
        const written = stream.write(effectBatch(effect));
        sent.set(stream.seq, effect);
        await written;
      }
      const left = keys.copy();
      const stays = new Set(failed.map(({ hash }) => hash));
      for (const hash of free) if (!stays.has(hash)) left.delete(hash);
      const done = await stream.commit(position, left.stored());
      faultPoint('host.letters.applied');
      return { keys: left, refused: [...refused, ...failed], checkpoint: done };
    } catch (error) {
      const before = waiting.length;
      for (const { seq, code, reason } of error instanceof UrutauError ? refusedRows(error) : []) {
        const effect = sent.get(seq ?? -1);
        if (effect === undefined) continue;
        const { key, letter } = effect;
        waiting = waiting.filter((other) => other !== effect);
        failed.push({ hash: key.hash, key: key.text, letter, code, reason });
      }
      if (waiting.length === before) throw error;
    } finally {
      stream.close();
    }
  }
}

function identityOf({ v, writer, run, source, stream, schemaId, shape }: Checkpoint): StreamIdentity {
  return { v, writer, run, source, stream, schemaId, shape };
}

/** The stream of a commit without rows is never opened. */
const NO_ROWS: TableShape = { fields: [], primaryKey: [], before: 'none' };

/** Removes the dead letters that count no more, and answers how many of them counted before. */
async function sweep(
  { letters, box }: ReplayOptions,
  { before, now }: { before: QuarantinedKeys; now: QuarantinedKeys },
): Promise<number> {
  let applied = 0;
  await box.remove(async function* () {
    for await (const letter of letters()) {
      const hashes = effectsOf(letter).map(({ key }) => key.hash);
      if (hashes.some((hash) => now.counts(hash, letter))) continue;
      if (hashes.some((hash) => before.counts(hash, letter))) applied++;
      yield letter;
    }
  });
  return applied;
}
