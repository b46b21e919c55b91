import { PROFILES, type ProfileName } from './profiles.ts';

export interface Options {
  profile: ProfileName;
  seed: number;
  chaos: boolean;
  /** Instead of the profile's time. */
  minutes?: number;
}

export const USAGE = `npm run oracle -- [options]

  --profile NAME   ${Object.keys(PROFILES).join(', ')} (smoke)
  --seed N         of an earlier run, to do it again
  --minutes N      instead of the profile's time; a short run may miss a case, and then fails
  --chaos          kill source driver, sink driver and host in random order, one every 25 s or so`;

/** Answers the options, `{ help: true }`, or `{ problem }` in words. */
export function parseOptions(
  args: readonly string[],
  freshSeed: () => number,
): Options | { help: true } | { problem: string } {
  const options: Options = { profile: 'smoke', seed: freshSeed(), chaos: false };
  for (let at = 0; at < args.length; at++) {
    const [name, inline] = args[at]!.split(/=(.*)/s, 2);
    const value = () => inline ?? args[++at];
    switch (name) {
      case '--help':
      case '-h':
        return { help: true };
      case '--chaos':
        options.chaos = true;
        break;
      case '--profile': {
        const profile = value() ?? 'nothing';
        if (!isProfile(profile)) {
          return { problem: `--profile: expected one of ${Object.keys(PROFILES).join(', ')}; came ${profile}` };
        }
        options.profile = profile;
        break;
      }
      case '--minutes': {
        const text = value() ?? 'nothing';
        if (!/^[1-9]\d{0,3}$/.test(text)) {
          return { problem: `--minutes: expected a whole number from 1 to 9999; came ${text}` };
        }
        options.minutes = Number(text);
        break;
      }
      case '--seed': {
        const text = value() ?? 'nothing';
        if (!/^\d{1,10}$/.test(text) || Number(text) >= 2 ** 32) {
          return { problem: `--seed: expected a whole number below 2^32; came ${text}` };
        }
        options.seed = Number(text);
        break;
      }
      default:
        return { problem: `unknown option ${args[at]}` };
    }
  }
  return options;
}

/** The command that does the same again. */
export function reproOf({ profile, seed, chaos, minutes }: Options): string {
  const time = minutes === undefined ? '' : ` --minutes ${minutes}`;
  return `npm run oracle -- --profile ${profile} --seed ${seed}${time}${chaos ? ' --chaos' : ''}`;
}

function isProfile(name: string): name is ProfileName {
  return Object.hasOwn(PROFILES, name);
}
