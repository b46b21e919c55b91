import type { SinkType } from './schema/sink.ts';

/** A target with the namespace before it, unless it names its own (it has a dot) or there is none. */
export function fullTarget(target: string, namespace: string | undefined): string {
  return target.includes('.') || namespace === undefined || namespace === '' ? target : `${namespace}.${target}`;
}

/** The namespace of a sink; Postgres has one that everybody means. */
export function namespaceOf(sink: { type?: SinkType; namespace?: string } | undefined): string | undefined {
  return sink?.namespace ?? (sink?.type === 'postgres' ? 'public' : undefined);
}

/** Name of the table of dead letters, in the namespace of the sink. */
export const DEAD_LETTERS = 'urutau_dead_letters';
