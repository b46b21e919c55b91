/** What a command's end means to a script. */
export const EXIT = {
  fine: 0,
  failed: 1,
  /** Wrong configuration or environment. */
  wrong: 2,
  /** Finished, with a table paused or failed. */
  unfinished: 3,
  /** Ended at once by a second signal. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
