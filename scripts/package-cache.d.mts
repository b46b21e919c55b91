/**
 * Fetches one exact version of an npm package into the cache (`URUTAU_CACHE`, or a folder of the system's own)
 * unless it is there, and returns the folder it is unpacked in. Rejects with npm's own words.
 */
export function fetchPackage(name: string, version: string, prepare?: (folder: string) => void): Promise<string>;

/** True when another user of this machine can come to the folder, or to the place where it is going to be made. */
export function reachableByOthers(folder: string): boolean;
