import { Option } from 'commander';

export type OutputFormat = 'text' | 'json';

export function outputOption(): Option {
  return new Option('--output <format>', 'text for people, json for programs')
    .choices(['text', 'json'])
    .default('text');
}

/** As JSON with a newline; big integers as texts. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, (_, field) => (typeof field === 'bigint' ? String(field) : field), 2)}\n`;
}
