import type { Mask } from '../supervisor/mask.ts';

/**
 * Metrics text of a driver without secrets: in the values of labels, in help, and in whatever is no metric, which a
 * complaint may quote. Names and numbers stay, for a password that is a common word must not make a metric unreadable.
 */
export function maskedExposition(text: string, mask: Mask): string {
  return text
    .split('\n')
    .map((line) => {
      const help = HELP.exec(line);
      if (help) return `${help[1]}${mask(help[2]!)}`;
      return SAMPLE.test(line) ? line.replace(QUOTED, (quoted) => mask(quoted)) : mask(line);
    })
    .join('\n');
}

const HELP = /^(# HELP \S+ )(.*)$/;
const SAMPLE =
  /^(?:# (?:TYPE|UNIT) \S+ [a-z]+$|# EOF$|[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})? [+-]?(?:[0-9.eE+-]+|inf|nan)(?: |$))/i;
const QUOTED = /"(?:[^"\\]|\\.)*"/g;
