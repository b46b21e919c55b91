import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { loadPipeline } from '../spec/load.ts';
import type { Pipeline } from '../spec/pipeline.ts';
import { type Problem, renderProblem } from '../spec/problem.ts';
import type { Shell } from './shell.ts';

/** The options of every command that works on a pipeline. */
export interface PipelineOptions {
  file: string;
  stateDir?: string;
  sourcePlugin?: string;
  sinkPlugin?: string;
  logLevel: 'debug' | 'info' | 'warn' | 'error';
}

export function withPipelineOptions(
  command: Command,
  { logLevel }: { logLevel: PipelineOptions['logLevel'] },
): Command {
  return command
    .requiredOption('-f, --file <file>', 'the pipeline file')
    .option('--state-dir <dir>', 'where the host keeps what it writes (default: .urutau/<pipeline> beside the file)')
    .option('--source-plugin <dir>', 'folder of a source driver, instead of the one in the file')
    .option('--sink-plugin <dir>', 'folder of a sink driver, instead of the one in the file')
    .addOption(logLevelOption(logLevel));
}

export function logLevelOption(level: PipelineOptions['logLevel']): Option {
  return new Option('--log-level <level>', 'the least that is logged; debug adds stack traces to errors')
    .choices(['debug', 'info', 'warn', 'error'])
    .default(level);
}

export interface OpenedPipeline {
  readonly pipeline: Pipeline;
  readonly warnings: readonly Problem[];
  /** Absolute; it may not exist yet. */
  readonly stateDir: string;
}

/** Loads the file that the options name. Throws a `SpecError` with every problem. */
export function openPipeline(options: PipelineOptions, { env }: Shell): OpenedPipeline {
  const { file, sourcePlugin, sinkPlugin } = options;
  const { pipeline, warnings } = loadPipeline(file, { env, sourcePlugin, sinkPlugin });
  const stateDir = resolve(options.stateDir ?? join(pipeline.directory, '.urutau', pipeline.name));
  return { pipeline, warnings, stateDir };
}

export function printWarnings(warnings: readonly Problem[], { err }: Shell): void {
  for (const warning of warnings) err.write(`warning: ${renderProblem(warning)}\n`);
}
