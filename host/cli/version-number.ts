import manifest from '../package.json' with { type: 'json' };

/** The host's own version; part of the bundle, so that it is that of the code that runs. */
export const HOST_VERSION: string = manifest.version;
