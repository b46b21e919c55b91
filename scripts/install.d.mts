/** Why node_modules is not what package-lock.json says, in words; undefined when it is. */
export function installNeeded(): string | undefined;

/** Runs `npm ci` when it is needed, and returns whether it was. Rejects when npm fails. */
export function install(): Promise<boolean>;
