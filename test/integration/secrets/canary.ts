import { SPELLINGS } from '../../unit/host/supervisor/spellings.ts';

/** A password that each way of writing it spells differently, found again wherever it is written. */
export function canary(name: string): string {
  return `p@ss/wörd"\\+=% of ${name}?`;
}

/** What a program may write of a secret, by how it writes it. */
export function spellingsOf(secret: string): [how: string, text: string][] {
  const inBase64 = [0, 1, 2].map((before): [string, string] => {
    const whole = Buffer.from(`${'x'.repeat(before)}${secret}xx`).toString('base64');
    // Without what its neighbours have a part in.
    return [`base64 after ${before} bytes`, whole.slice(4, 4 * Math.floor((before + Buffer.byteLength(secret)) / 3))];
  });
  return [...Object.entries(SPELLINGS).map(([how, spell]): [string, string] => [how, spell(secret)]), ...inBase64];
}

const searched = { texts: 0, spellings: 0 };

/** What was searched by this file's tests, for the figures of `verify`. */
export function searchedInWords(): string {
  return `${searched.spellings} spellings of planted secrets in none of ${searched.texts} texts`;
}

/** Where which of the secrets stands, and how it is spelled there. Nothing, if all is well. */
export function leaksIn(texts: Readonly<Record<string, string>>, secrets: readonly string[]): string[] {
  const spelled = secrets.flatMap((secret) => spellingsOf(secret).map(([how, text]) => ({ secret, how, text })));
  searched.texts += Object.keys(texts).length;
  searched.spellings += spelled.length;
  return Object.entries(texts).flatMap(([place, whole]) =>
    spelled.flatMap(({ secret, how, text }) => {
      const at = whole.indexOf(text);
      if (at < 0) return [];
      return [`${place}: ${secret} as ${how}: …${whole.slice(Math.max(0, at - 60), at + text.length)}`];
    }),
  );
}
