/** A value of the batch that the target's column cannot hold. The reason never holds the value. */
export class RefusedValue extends Error {
  readonly column: string;
  /** Row of the batch. */
  readonly row: number;

  constructor(column: string, row: number, reason: string) {
    super(reason);
    this.column = column;
    this.row = row;
  }
}
