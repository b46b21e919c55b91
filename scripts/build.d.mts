/** Bundles what is not up to date, and returns the output files that it wrote, relative to the repository. */
export function build(): Promise<string[]>;
