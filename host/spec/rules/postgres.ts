import type { Finding } from '../problem.ts';
import type { Draft } from '../schema/pipeline-file.ts';
import { clientCertificate } from './client-certificate.ts';
import { empty, type Rule } from './rule.ts';

type PostgresDraft = NonNullable<NonNullable<Draft['source']>['postgres']>;

const BLOCK = ['source', 'postgres'] as const;

/** The fields of the block that say where the server is; the others go with an uri too. */
const CONNECTION_FIELDS = ['host', 'port', 'database', 'username', 'password', 'params', 'ssl', 'ssh'] as const;

/** Rule 4. */
export const postgres: Rule = function* ({ file, source, show }) {
  if (source !== 'postgres') return;
  const { uri, slotName, snapshotUri, postgres: block = {} } = file.source ?? {};
  if (empty(slotName)) {
    yield {
      path: ['source', 'slotName'],
      what: 'is missing, expected the name of the replication slot',
      remedy: 'add it, such as slotName: urutau',
    };
  } else if (!/^[A-Za-z_]\w{0,62}$/.test(slotName!)) {
    const what = `expected a letter or "_", then letters, digits and "_", at most 63, came ${show(['source', 'slotName'])}`;
    yield { path: ['source', 'slotName'], what, remedy: 'rename the slot' };
  }
  for (const [field, address] of [
    ['uri', uri],
    ['snapshotUri', snapshotUri],
  ] as const) {
    if (empty(address) || /^postgres(ql)?:\/\//.test(address!)) continue;
    const what = 'expected an address that begins with postgres:// or postgresql://, came another scheme or none';
    yield { path: ['source', field], what, remedy: 'correct the address' };
  }
  yield* server(uri, block, show);
  yield* encryption(block);
  yield* tunnel(block);
};

function* server(
  uri: string | undefined,
  block: PostgresDraft,
  show: (path: readonly string[]) => string,
): Iterable<Finding> {
  const parts = CONNECTION_FIELDS.filter((field) => block[field] !== undefined);
  if (!empty(uri) && parts.length > 0) {
    const what = `an uri and ${parts.join(', ')} exclude each other`;
    yield { path: [...BLOCK, parts[0]!], atKey: true, what, remedy: 'keep the uri or the parts' };
    return;
  }
  if (!empty(uri)) return;
  if (parts.length === 0) {
    const what = 'is missing, expected an address or a postgres block with host and database';
    yield { path: ['source', 'uri'], what, remedy: 'add one of the two, or set URUTAU_SOURCE_URI' };
    return;
  }
  for (const field of ['host', 'database'] as const) {
    if (empty(block[field]))
      yield { path: [...BLOCK, field], what: 'is missing, a connection in parts needs it', remedy: 'add it' };
  }
  if (!empty(block.host) && !bare(block.host!)) {
    const what = `expected a bare host name or address, came ${show([...BLOCK, 'host'])}`;
    yield { path: [...BLOCK, 'host'], what, remedy: 'put port and database into their own fields' };
  }
}

// An IPv6 address has colons; a host with a port has one.
function bare(host: string): boolean {
  return /^[^\s:/@?#]+$/.test(host) || /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/.test(host);
}

function* encryption({ ssl }: PostgresDraft): Iterable<Finding> {
  const at = [...BLOCK, 'ssl'];
  if ((ssl?.mode === 'verify-ca' || ssl?.mode === 'verify-full') && empty(ssl.ca)) {
    yield {
      path: [...at, 'ca'],
      what: `is missing, ${ssl.mode} checks the server against it`,
      remedy: 'add the authority’s certificate',
    };
  }
  yield* clientCertificate(ssl, at);
}

function* tunnel({ ssh }: PostgresDraft): Iterable<Finding> {
  if (ssh === undefined) return;
  const at = [...BLOCK, 'ssh'];
  for (const field of ['host', 'username', 'knownHosts'] as const) {
    if (empty(ssh[field]))
      yield { path: [...at, field], what: 'is missing, an SSH connection needs it', remedy: 'add it' };
  }
  if (!empty(ssh.password) && !empty(ssh.privateKey)) {
    yield {
      path: [...at, 'privateKey'],
      atKey: true,
      what: 'password and privateKey exclude each other',
      remedy: 'keep one of the two',
    };
  }
  if (empty(ssh.password) && empty(ssh.privateKey)) {
    yield {
      path: [...at, 'password'],
      what: 'is missing, expected a password or a privateKey',
      remedy: 'add one of the two',
    };
  }
  if (!empty(ssh.passphrase) && empty(ssh.privateKey)) {
    yield {
      path: [...at, 'passphrase'],
      atKey: true,
      what: 'belongs to a privateKey, and there is none',
      remedy: 'remove it',
    };
  }
}
