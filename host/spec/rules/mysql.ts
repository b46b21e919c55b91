import { closest } from '../did-you-mean.ts';
import type { Finding } from '../problem.ts';
import { empty, type Rule } from './rule.ts';

const PARAMETERS = ['timezone', 'tls', 'ssl-ca', 'ssl-cert', 'ssl-key', 'ssl-server-name'];
const TLS_MODES = ['true', 'verify-ca', 'verify-full', 'skip-verify', 'false'];

/** The address of a MySQL or MariaDB source and its parameters. */
export const mysql: Rule = function* ({ file, source }) {
  if (source !== 'mysql' && source !== 'mariadb') return;
  if (empty(file.source?.uri)) {
    yield {
      path: ['source', 'uri'],
      what: 'is missing, expected an address such as mysql://host:3306/db',
      remedy: 'add it, or set URUTAU_SOURCE_URI',
    };
  }
  for (const field of ['uri', 'snapshotUri'] as const) {
    const uri = file.source?.[field];
    if (!empty(uri)) yield* address(uri!, ['source', field]);
  }
};

// The messages name parameters, never the address: it may hold a password.
function* address(uri: string, path: readonly string[]): Iterable<Finding> {
  if (!/^(mysql|mariadb):\/\//.test(uri)) {
    yield {
      path,
      what: 'expected an address that begins with mysql:// or mariadb://, came another scheme or none',
      remedy: 'correct the address',
    };
    return;
  }
  const query = new URLSearchParams(uri.includes('?') ? uri.slice(uri.indexOf('?') + 1) : '');
  for (const parameter of query.keys()) {
    if (PARAMETERS.includes(parameter)) continue;
    const meant = closest(parameter, PARAMETERS);
    const remedy = meant === undefined ? `use one of ${PARAMETERS.join(', ')}` : `did you mean "${meant}"?`;
    yield { path, what: 'the address has an unknown parameter', remedy };
  }
  if (query.has('tls') && !TLS_MODES.includes(query.get('tls')!)) {
    yield {
      path,
      what: `expected tls to be one of ${TLS_MODES.join(', ')}, came something else`,
      remedy: 'correct the parameter',
    };
  }
  if (query.has('ssl-cert') !== query.has('ssl-key')) {
    yield { path, what: 'ssl-cert and ssl-key come together', remedy: 'add the other, or remove both' };
  }
}
