import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { lookFor } from '../../../../host/cli/pipeline-drivers.ts';
import { loadPipeline } from '../../../../host/spec/load.ts';

const FIXTURES = resolve(import.meta.dirname, '../../../fixtures/drivers');

test('quarantine into a driver that names no reader is refused by the name of both', async () => {
  const text = `pipeline: p
source: {kind: postgres, uri: "postgres://h/d", slotName: s}
sink: {driver: ${FIXTURES}/plain-sink, config: {}}
tables: [{source: public.a, target: a}, {source: public.b, target: b, onPoison: quarantine}]
`;
  const { pipeline } = loadPipeline('p.yaml', { env: {}, readFile: () => text });

  const { problems } = await lookFor(pipeline, 'sink', { hostDirectory: FIXTURES, installedDirectory: FIXTURES });

  expect(problems.filter(({ path }) => path.startsWith('tables'))).toMatchObject([
    { path: 'tables[1].onPoison', what: expect.stringContaining('the driver plain-sink names no reader') },
  ]);
});
