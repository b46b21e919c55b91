/**
 * Keeps which transactions a snapshot must show. The log can be read before a SELECT sees it: a commit is written first
 * and becomes visible later, and not in log order. So every transaction that was decoded is remembered until some
 * snapshot was seen to show it; from then on all later ones do.
 */
export class ReadView {
  /** By their ids as the log has them, the low 32 bits: the how-manieth each of them was. Oldest first. */
  readonly #decoded = new Map<number, number>();
  #count = 0;
  /** Transactions below it were there when the reader started: an earlier process may have decoded their commits. */
  #startedBelow: bigint | null = null;

  /** A transaction's end was, or is about to be, decoded. */
  decoded(xid: number): void {
    this.#decoded.set(xid, ++this.#count);
  }

  /** Stands for all transactions decoded so far: those that come while a snapshot is taken it need not show. */
  get mark(): number {
    return this.#count;
  }

  /**
   * The reader starts; `xid` is pg_current_xact_id() of now. A snapshot would not do: it does not name running
   * transactions that began after the last one that has ended.
   */
  started(xid: string): void {
    this.#startedBelow = BigInt(xid);
  }

  /** Decoded transactions that are remembered. */
  get size(): number {
    return this.#decoded.size;
  }

  /** Whether `snapshot` (pg_current_snapshot()) shows all up to `mark`. Forgets those that it shows. */
  shownBy(snapshot: string, mark = this.#count): boolean {
    const { xmin, xmax, running } = parseSnapshot(snapshot);
    if (this.#startedBelow !== null && xmin >= this.#startedBelow) this.#startedBelow = null;
    for (const xid of this.#decoded.keys()) {
      const full = widen(xid, xmax);
      if (full < xmax && !running.has(full)) this.#decoded.delete(xid);
    }
    const [oldest = Number.POSITIVE_INFINITY] = this.#decoded.values();
    return this.#startedBelow === null && oldest > mark;
  }
}

/** `xmin:xmax:xip,…`: all below xmin have ended, and all below xmax but those in the list. */
function parseSnapshot(text: string): { xmin: bigint; xmax: bigint; running: Set<bigint> } {
  const [xmin, xmax, running] = text.split(':');
  return { xmin: BigInt(xmin!), xmax: BigInt(xmax!), running: new Set(running ? running.split(',').map(BigInt) : []) };
}

const TWO_32 = 1n << 32n;
const TWO_31 = 1n << 31n;

/** The 64-bit transaction id with these low 32 bits that lies nearest to `near`: the log has no epoch. */
function widen(xid: number, near: bigint): bigint {
  const full = (near & ~(TWO_32 - 1n)) | BigInt(xid);
  if (full - near > TWO_31) return full - TWO_32;
  return near - full > TWO_31 ? full + TWO_32 : full;
}
