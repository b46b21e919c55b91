import { UrutauError } from '@urutau/contract';
import type { ControlledPipeline } from '../../../../host/control/server.ts';
import type { PipelineStatus } from '../../../../host/pipeline/status.ts';
import { runningPipeline } from '../observe/status-of-a-pipeline.ts';

/** A pipeline as far as the control socket sees it, which notes what it is asked. */
export class SmallPipeline implements ControlledPipeline {
  readonly asked: unknown[] = [];

  status = (): PipelineStatus => runningPipeline;
  pause = (table: string) => this.#perform('pause', table);
  resume = (table: string) => this.#perform('resume', table);
  commit = (table: string) => this.#perform('commit', table);
  resync = (table: string, options?: object) => this.#perform('resync', table, options);
  replay = async (table: string) => {
    await this.#perform('replay', table);
    return { keys: 1, changes: 2, refused: [] };
  };

  resetDriver = (role: string) => void this.asked.push(['reset', role]);

  async #perform(...call: unknown[]): Promise<void> {
    if (call[1] === 'nobody') {
      throw new UrutauError('table-not-found', 'this pipeline has no table nobody', { remedy: 'It has: a, b.' });
    }
    this.asked.push(call);
  }
}
