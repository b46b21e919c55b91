import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import type { Draft } from '../schema/pipeline-file.ts';
import type { SinkType } from '../schema/sink.ts';
import type { SourceKind } from '../schema/source.ts';
import type { Show } from '../show.ts';

/** What the rules look at. `external` is a driver from outside; undefined is a kind that could not be told. */
export interface Subject {
  readonly file: Draft;
  readonly source: SourceKind | 'external' | undefined;
  readonly sink: SinkType | 'external' | undefined;
  readonly show: Show;
}

/** One idea of what fields demand of each other. Pure. A field that is missing because it was refused stays unmentioned. */
export type Rule = (subject: Subject) => Iterable<Finding>;

export type TableDraft = NonNullable<NonNullable<Draft['tables']>[number]>;

/** The tables that could be read, each with its path. */
export function tablesOf(file: Draft): { table: TableDraft; at: Path }[] {
  return (file.tables ?? []).flatMap((table, index) => (table === undefined ? [] : [{ table, at: ['tables', index] }]));
}

/** Upsert unless the table or the sink's defaults say otherwise. */
export function writeModeOf(table: TableDraft, file: Draft): 'upsert' | 'append' | 'append-idempotent' {
  return table.writeMode ?? file.sink?.defaults?.writeMode ?? 'upsert';
}

/** The items of a list that could be read. */
export function present<T>(items: readonly (T | undefined)[] | undefined): T[] {
  return (items ?? []).filter((item) => item !== undefined);
}

/** The place of each item that stands in the list a second time. */
export function repeated(items: readonly unknown[] | undefined): number[] {
  return (items ?? []).flatMap((item, index) => (item !== undefined && items!.indexOf(item) < index ? [index] : []));
}

export function empty(value: string | undefined): boolean {
  return value === undefined || value === '';
}
