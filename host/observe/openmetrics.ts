/** One metric with all its samples. */
export interface Family {
  readonly name: string;
  type: string;
  help: string | null;
  unit: string | null;
  readonly samples: Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: readonly Label[];
  /** As it came. Timestamps are left out: their unit differs between the formats, and what is read is of now. */
  readonly value: string;
}

/** The value is as it came, with its escapes. */
export type Label = readonly [name: string, value: string];

/**
 * Reads OpenMetrics text, and the older text format of Prometheus where the two differ only in details. Throws an Error
 * that names the line when it does not understand it: one bad line would take the whole scrape with it.
 */
export function parseExposition(text: string): Family[] {
  const families = new Map<string, Family>();
  let current: Family | null = null;
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '# EOF') break;
    const described = DESCRIPTION.exec(line);
    if (described) {
      const [, keyword, name = '', words = ''] = described;
      current = familyOf(families, name);
      describe(current, keyword, words, index);
    } else if (line.trim() !== '' && !line.startsWith('#')) {
      const sample = parseSample(line, index);
      if (current === null || !belongs(sample.name, current.name)) current = familyOf(families, sample.name);
      current.samples.push(sample);
    }
  }
  return [...families.values()].map(named);
}

/** OpenMetrics text. */
export function renderExposition(families: Iterable<Family>): string {
  const lines: string[] = [];
  for (const { name, type, help, unit, samples } of families) {
    lines.push(`# TYPE ${name} ${type}`);
    if (unit !== null) lines.push(`# UNIT ${name} ${unit}`);
    if (help !== null) lines.push(`# HELP ${name} ${help}`);
    for (const { name: sample, labels, value: number } of samples) {
      const spelled = labels.map(([label, value]) => `${label}="${value}"`).join(',');
      lines.push(`${sample}${spelled === '' ? '' : `{${spelled}}`} ${number}`);
    }
  }
  return `${lines.join('\n')}\n# EOF\n`;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\\]*(?:\\\\.[^"\\\\]*)*"';
const LABELS = `\\{((?:${LABEL}(?:,${LABEL})*,?)?)\\}`;
const NUMBER =
  '[+-]?(?:[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\\.[0-9]+(?:[eE][+-]?[0-9]+)?|[iI][nN][fF]|[nN][aA][nN])';

const DESCRIPTION = new RegExp(`^# (TYPE|HELP|UNIT) (${NAME})(?: (.*))?$`);
const AFTER_VALUE = `(?: ${NUMBER})?(?: # ${LABELS} ${NUMBER}(?: ${NUMBER})?)?`;
const SAMPLE = new RegExp(`^(${NAME})(?:${LABELS})? (${NUMBER})${AFTER_VALUE}$`);
const ONE_LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="([^"\\]*(?:\\.[^"\\]*)*)"/g;

const SUFFIXES = ['', '_total', '_created', '_bucket', '_sum', '_count', '_gsum', '_gcount', '_info'];
const TYPES = ['unknown', 'gauge', 'counter', 'stateset', 'info', 'histogram', 'gaugehistogram', 'summary'];

function familyOf(families: Map<string, Family>, name: string): Family {
  const present = families.get(name);
  if (present) return present;
  const family: Family = { name, type: 'unknown', help: null, unit: null, samples: [] };
  families.set(name, family);
  return family;
}

function describe(family: Family, keyword: string | undefined, words: string, index: number): void {
  if (keyword === 'HELP') family.help = words;
  else if (keyword === 'UNIT') family.unit = words;
  else {
    family.type = words === 'untyped' ? 'unknown' : words;
    if (!TYPES.includes(family.type)) throw new Error(`line ${index + 1}: ${quoted(words)} is no type of a metric`);
  }
}

function parseSample(line: string, index: number): Sample {
  const match = SAMPLE.exec(line);
  if (match === null) throw new Error(`line ${index + 1}: expected a sample; came ${quoted(line)}`);
  const [, name = '', labels = '', value = ''] = match;
  return { name, labels: [...labels.matchAll(ONE_LABEL)].map(([, label = '', text = '']) => [label, text]), value };
}

function belongs(sample: string, family: string): boolean {
  return sample.startsWith(family) && SUFFIXES.includes(sample.slice(family.length));
}

/** The older format calls a counter by the name of its sample. */
function named(family: Family): Family {
  return family.type === 'counter' ? { ...family, name: family.name.replace(/_total$/, '') } : family;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
