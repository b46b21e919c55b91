import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument as parseYaml,
} from 'yaml';
import { Places } from './locate.ts';
import type { Path } from './path.ts';
import type { Finding } from './problem.ts';

/** A text as plain data with the place of each field. With syntax errors `value` is undefined. */
export interface ParsedDocument {
  readonly value: unknown;
  readonly places: Places;
  readonly findings: readonly Finding[];
}

/**
 * Parses YAML, and so JSON. Empty fields count as absent. An integer that a JS number cannot hold stays a bigint.
 * Duplicate keys are findings and do not hide the rest; of two values the first counts.
 */
export function parseDocument(text: string): ParsedDocument {
  const lineCounter = new LineCounter();
  const document = parseYaml(text, { lineCounter, prettyErrors: false, uniqueKeys: false, intAsBigInt: true });
  const places = new Places((offset) => {
    const { line, col } = lineCounter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  });
  const syntax = [...document.errors, ...document.warnings].map(({ code, pos }) => syntaxFinding(code, pos[0]));
  if (syntax.length > 0) return { value: undefined, places, findings: syntax };
  const reader = new Reader(document, places);
  const value = reader.read(document.contents, [], undefined);
  return { value, places, findings: reader.findings };
}

// The parser's own messages may quote the text, which may hold a secret.
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_ALIAS: 'this alias has no anchor before it',
  BAD_DQ_ESCAPE: 'this escape is not known inside double quotes',
  BAD_INDENT: 'the indentation does not fit the lines above',
  BAD_SCALAR_START: 'plain text cannot begin with this character',
  BLOCK_AS_IMPLICIT_KEY: 'a second colon makes a map inside one line',
  MISSING_CHAR: 'a closing quote, bracket, colon or comma is missing',
  MULTIPLE_DOCS: 'the file holds more than one document',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing after this name',
  TAB_AS_INDENT: 'a tab is used for indentation',
  TAG_RESOLVE_FAILED: 'this tag is not known',
  UNEXPECTED_TOKEN: 'this was not expected here',
};

function syntaxFinding(code: string, offset: number): Finding {
  return {
    path: [],
    offset,
    what: `not valid YAML: ${SYNTAX[code] ?? 'this cannot be read'}`,
    remedy: 'indent with spaces and put text with special characters in quotes',
  };
}

const ALIASES_MAX = 100;
const DEPTH_MAX = 64;

class Reader {
  readonly findings: Finding[] = [];
  readonly #document: Document;
  readonly #places: Places;
  #aliases = 0;

  constructor(document: Document, places: Places) {
    this.#document = document;
    this.#places = places;
  }

  read(node: Node | null | unknown, path: Path, key: number | undefined): unknown {
    if (isAlias(node)) return this.#follow(node.resolve(this.#document), path, key);
    const start = (node as Node | null)?.range?.[0] ?? key ?? 0;
    if (isScalar(node)) {
      const empty = node.value === null;
      this.#places.record(path, { key, value: empty ? (key ?? start) : start });
      return empty ? undefined : smallest(node.value);
    }
    // A block is best found by its name: its first line is already one of its fields.
    this.#places.record(path, { key, value: key ?? start });
    if (path.length > DEPTH_MAX) return this.#refuse(path, `nested deeper than ${DEPTH_MAX} levels`);
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index], undefined));
    if (isMap(node)) return this.#readMap(node.items, path);
    return undefined;
  }

  #readMap(items: readonly { key: unknown; value: unknown }[], path: Path): Record<string, unknown> {
    const fields = new Map<string, unknown>();
    for (const { key, value } of items) {
      const offset = (key as Node | null)?.range?.[0];
      if (!isScalar(key)) {
        this.findings.push({
          path,
          offset,
          what: 'the name of a field must be plain text',
          remedy: 'put it in quotes',
        });
        continue;
      }
      const name = String(key.value ?? '');
      if (fields.has(name)) {
        const what = 'this field is written twice';
        this.findings.push({ path: [...path, name], offset, what, remedy: 'keep one of the two' });
        continue;
      }
      fields.set(name, this.read(value, [...path, name], offset));
    }
    return Object.fromEntries(fields);
  }

  #follow(target: Node | undefined, path: Path, key: number | undefined): unknown {
    this.#aliases += 1;
    if (this.#aliases > ALIASES_MAX) return this.#refuse(path, `more than ${ALIASES_MAX} aliases are used`);
    return this.read(target, path, key);
  }

  #refuse(path: Path, what: string): undefined {
    this.findings.push({ path, what, remedy: 'write the values out' });
    return undefined;
  }
}

function smallest(value: unknown): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
