import CliTable from 'cli-table3';
import type { Terminal } from './shell.ts';

/** Rows under a head: with rules on a terminal, plain aligned text elsewhere. Ends with a newline. */
export function columns(head: readonly string[], rows: readonly (readonly string[])[], terminal: Terminal): string {
  if (!terminal.isTerminal) return plain([head, ...rows]);
  const table = new CliTable({ head: [...head], style: { head: ['bold'], border: ['gray'] } });
  table.push(...rows.map((row) => [...row]));
  return `${table.toString()}\n`;
}

function plain(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}
