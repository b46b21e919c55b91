import { UrutauError } from '@urutau/contract';
import { checkConfig } from '../driver-packages/config-schema.ts';
import { type DriverPlaces, type DriverRole, findDriver } from '../driver-packages/find.ts';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import type { Path } from '../spec/path.ts';
import type { Pipeline } from '../spec/pipeline.ts';
import { type Finding, type Problem, placed, SpecError } from '../spec/problem.ts';
import { revealed } from '../spec/secrets.ts';

export type PipelineDrivers = Readonly<Record<DriverRole, DriverPackage>>;

/** Finds both drivers of a pipeline. Throws a `SpecError` with every way in which one is missing or its config is wrong. */
export async function pipelineDrivers(pipeline: Pipeline, places: DriverPlaces): Promise<PipelineDrivers> {
  const [source, sink] = await Promise.all([lookFor(pipeline, 'source', places), lookFor(pipeline, 'sink', places)]);
  const problems = [...source.missing, ...source.problems, ...sink.missing, ...sink.problems];
  if (problems.length > 0) throw new SpecError(problems);
  return { source: source.driver!, sink: sink.driver! };
}

/** As `pipelineDrivers`, for one side alone. */
export async function pipelineDriver(
  pipeline: Pipeline,
  role: DriverRole,
  places: DriverPlaces,
): Promise<DriverPackage> {
  const { driver, missing, problems } = await lookFor(pipeline, role, places);
  if (missing.length + problems.length > 0) throw new SpecError([...missing, ...problems]);
  return driver!;
}

export interface LookedFor {
  readonly driver: DriverPackage | null;
  /** Why there is no driver. */
  readonly missing: readonly Problem[];
  /** What the driver's config.schema.json has against its config. */
  readonly problems: readonly Problem[];
}

export async function lookFor(pipeline: Pipeline, role: DriverRole, places: DriverPlaces): Promise<LookedFor> {
  try {
    const driver = await findDriver(pipeline[role].driver, role, places);
    const findings = [
      ...configFindings(pipeline, role, driver),
      ...(role === 'sink' ? readerFindings(pipeline, driver) : []),
    ];
    return { driver, missing: [], problems: located(findings, pipeline) };
  } catch (error) {
    if (!(error instanceof UrutauError)) throw error;
    const path = [role, driverField(pipeline, role)];
    const remedy = error.remedy.replace(/\.$/, '');
    return { driver: null, missing: located([{ path, what: error.message, remedy }], pipeline), problems: [] };
  }
}

function configFindings(pipeline: Pipeline, role: DriverRole, driver: DriverPackage): Finding[] {
  const top: Path = isBlock(pipeline, role) ? [role] : [role, 'config'];
  const remedy = `correct it; \`urutau-host driver info ${driver.manifest.name}\` lists the fields of this driver`;
  return checkConfig(driver, revealed(pipeline[role].config)).map(({ path, problem }) => ({
    path: [...top, ...stepsOf(path)],
    what: problem,
    remedy,
  }));
}

/** Dead letters are read back to be replayed (PKG-6). */
function readerFindings({ tables }: Pipeline, { manifest: { name, reader } }: DriverPackage): Finding[] {
  if (reader !== undefined) return [];
  const what = `quarantine needs a destination that can be read back, and the driver ${name} names no reader`;
  return tables.flatMap(({ onPoison }, index): Finding[] =>
    onPoison === 'quarantine' ? [{ path: ['tables', index, 'onPoison'], what, remedy: 'write pause or stop' }] : [],
  );
}

/** The config of a built-in driver is the block of the file itself. */
function isBlock({ source, sink }: Pipeline, role: DriverRole): boolean {
  return role === 'source' ? source.kind !== undefined : sink.type !== undefined;
}

function driverField(pipeline: Pipeline, role: DriverRole): string {
  if (!isBlock(pipeline, role)) return 'driver';
  return role === 'source' ? 'kind' : 'type';
}

/** `postgres.ssl.mode`, `tables[0].name` → steps. */
function stepsOf(path: string): Path {
  if (path === '') return [];
  const steps = path.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
  return steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

function located(findings: readonly Finding[], { file, written }: Pipeline): Problem[] {
  return placed(findings, { file, locate: ({ path }) => written.locate(path) });
}
