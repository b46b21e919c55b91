/**
 * One text for all JSON texts of one value: keys sorted, the last of equal keys kept, no spaces, numbers by their exact
 * value and not as doubles. A text that is no JSON stays as it is.
 */
export function canonicalJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  return new Reader(text).value();
}

/** Of a text that is known to be JSON. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): string {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object();
      case '[':
        return this.#array();
      case '"':
        return this.#string();
      default:
        return exactNumber(this.#token(/[^\s,\]}]+/y));
    }
  }

  #object(): string {
    const members = new Map<string, string>();
    this.#at++;
    for (this.#skipSpace(); this.#text[this.#at] !== '}'; this.#skipSpace()) {
      if (this.#text[this.#at] === ',') this.#at++;
      this.#skipSpace();
      const key = this.#string();
      this.#skipSpace();
      this.#at++; // The colon.
      members.set(key, this.value());
    }
    this.#at++;
    const sorted = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${sorted.map(([key, value]) => `${key}:${value}`).join(',')}}`;
  }

  #array(): string {
    const items: string[] = [];
    this.#at++;
    for (this.#skipSpace(); this.#text[this.#at] !== ']'; this.#skipSpace()) {
      if (this.#text[this.#at] === ',') this.#at++;
      items.push(this.value());
    }
    this.#at++;
    return `[${items.join(',')}]`;
  }

  #string(): string {
    // Not by a pattern: one that repeats a choice runs out of stack on a string of some million characters.
    let end = this.#text.indexOf('"', this.#at + 1);
    while (this.#isEscaped(end)) end = this.#text.indexOf('"', end + 1);
    const token = this.#text.slice(this.#at, end + 1);
    this.#at = end + 1;
    return JSON.stringify(JSON.parse(token));
  }

  /** By an odd number of backslashes before it. */
  #isEscaped(at: number): boolean {
    let first = at;
    while (this.#text[first - 1] === '\\') first--;
    return (at - first) % 2 === 1;
  }

  #token(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [token] = pattern.exec(this.#text)!;
    this.#at += token.length;
    return token;
  }

  #skipSpace(): void {
    while (/[ \t\r\n]/.test(this.#text[this.#at] ?? '')) this.#at++;
  }
}

/** `1`, `1.0` and `10e-1` are `1e0`; true, false and null stay as they are. */
function exactNumber(token: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token);
  if (match === null) return token;
  const [, sign, whole, fraction = '', exponent = '0'] = match;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0e0';
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}
