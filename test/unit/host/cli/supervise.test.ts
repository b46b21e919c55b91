import { expect, onTestFinished, test } from 'vitest';
import { supervise } from '../../../../host/cli/supervise.ts';
import { sealed } from '../../../../host/spec/secrets.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';
import { ANSWERS, fixturePackage, SETTINGS } from '../supervisor/supervise.ts';

test('a field that only sounds like a secret and is true or null takes no word out of the log of a driver', async () => {
  const log = new RecordingLog();
  const { source } = sealed({
    source: { config: { authRequired: true, tokenFile: null, password: 's3cr3t' } },
  });
  const supervisor = supervise(
    {
      role: 'source',
      driver: fixturePackage(['node', 'reports-its-environment.mjs']),
      config: source.config,
      settings: SETTINGS,
      log,
      random: () => 0.5,
    },
    async () => ANSWERS,
  );
  onTestFinished(() => supervisor.stop());

  supervisor.start();
  await supervisor.ready(AbortSignal.timeout(20_000));

  expect((await log.line('report')).fields['config']).toEqual({
    authRequired: true,
    tokenFile: null,
    password: '***',
  });
});
