export const WORKLOADS = ['w1', 'w2', 'w4', 'w5', 'w6', 'w7', 'start'];

export const USAGE = `npm run bench -- [options]

  --only LIST      some of ${WORKLOADS.join(',')} (all)
  --rows N         rows of the table (1000000)
  --rounds N       rounds of each comparison, interleaved (3)
  --sizes LIST     transactions of w1: rows of each, all, mix (1000,1,10,all,mix)
  --profile DIR    write a CPU profile of each process of the product there, and print the hot functions
  --no-check       leave out the untimed comparison of the content that is printed as lines
  --long           w7 also with a table of ten times the rows, a slow sink and 1,000 tables
  --output FILE    the results as JSON (bench-results.json)
  --keep           keep the logs and pipeline files of the runs, and say where they are`;

const DEFAULTS = {
  only: WORKLOADS,
  rows: 1_000_000,
  rounds: 3,
  sizes: ['1000', '1', '10', 'all', 'mix'],
  check: true,
  long: false,
  keep: false,
  output: 'bench-results.json',
};

/** Answers the options, `{ help: true }`, or `{ problem }` in words. */
export function parseOptions(args) {
  const options = { ...DEFAULTS };
  for (let at = 0; at < args.length; at++) {
    const [name, inline] = args[at].split(/=(.*)/s, 2);
    const value = () => inline ?? args[++at];
    switch (name) {
      case '--help':
      case '-h':
        return { help: true };
      case '--long':
        options.long = true;
        break;
      case '--keep':
        options.keep = true;
        break;
      case '--no-check':
        options.check = false;
        break;
      case '--only':
        options.only = (value() ?? '').split(',');
        break;
      case '--sizes':
        options.sizes = (value() ?? '').split(',');
        break;
      case '--rows':
        options.rows = Number(value());
        break;
      case '--rounds':
        options.rounds = Number(value());
        break;
      case '--profile':
        options.profile = value();
        break;
      case '--output':
        options.output = value();
        break;
      default:
        return { problem: `unknown option ${args[at]}` };
    }
  }
  const problem = problemOf(options);
  return problem ? { problem } : options;
}

function problemOf({ only, sizes, rows, rounds }) {
  const unknown = only.find((name) => !WORKLOADS.includes(name));
  if (unknown !== undefined) return `--only: expected some of ${WORKLOADS.join(',')}; came ${unknown || 'nothing'}`;
  const odd = sizes.find((size) => size !== 'all' && size !== 'mix' && !(Number(size) >= 1));
  if (odd !== undefined) return `--sizes: expected numbers, all or mix; came ${odd || 'nothing'}`;
  if (!(rows >= 1000 && Number.isInteger(rows / 1000))) return '--rows: expected a multiple of 1000';
  if (!(rounds >= 1 && Number.isInteger(rounds))) return '--rounds: expected a whole number from 1';
  return undefined;
}
