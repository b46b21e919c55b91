import { expect, test } from 'vitest';
import { StatusLine } from '../../../../host/cli/status-line.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';

test('a log line takes the status line away, and it comes back below', () => {
  const { terminal, written } = screen();
  const line = new StatusLine(terminal);
  const log = line.logAbove(new RecordingLog());

  line.show('50 %');
  log.info('driver ready');
  line.show('');

  expect(written()).toBe('\r\x1b[2K50 %' + '\r\x1b[2K' + '50 %' + '\r\x1b[2K');
});

test('a status line never wraps', () => {
  const { terminal, written } = screen();

  new StatusLine(terminal).show('0123456789');

  expect(written()).toBe('\r\x1b[2K0123456');
});

function screen() {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  return { terminal: { write, isTerminal: true, columns: 8 }, written: () => text };
}
