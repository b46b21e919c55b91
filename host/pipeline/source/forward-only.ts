import { type Base64, type Envelope, UrutauError } from '@urutau/contract';

/**
 * CHG-9: checks that the changes of one stream come in one order, batch by batch, before anything of them is written. A
 * source whose offsets are ordered by their bytes never goes back, and no source has rows at one offset twice. Offsets of
 * another order only the source itself could compare, with a call for every batch.
 */
export function forwardOnly(
  table: string,
  { from, offsetOrder }: { from: Base64 | null; offsetOrder: 'bytes' | undefined },
): (batch: Pick<Envelope, 'rows' | 'offset'>) => void {
  let last = from;
  return ({ rows, offset }) => {
    if (offset === undefined) return;
    const isRepeated = rows > 0 && offset === last;
    if (isRepeated || (offsetOrder === 'bytes' && last !== null && isBefore(offset, last))) {
      throw wentBack(table, offset, last!, isRepeated ? 'CHG-6' : 'INV-5');
    }
    last = offset;
  };
}

function isBefore(a: Base64, b: Base64): boolean {
  return Buffer.compare(Buffer.from(a, 'base64'), Buffer.from(b, 'base64')) < 0;
}

function wentBack(table: string, offset: Base64, last: Base64, clause: string): UrutauError {
  return new UrutauError(
    'protocol-violation',
    `${table}: expected changes after the offset ${excerpt(last)}; came a batch that ends at ${excerpt(offset)} (${clause})`,
    {
      table,
      remedy:
        'Nothing of that batch was written. This is a fault of the source driver: once it is mended, ' +
        '`urutau-host table resync` copies the table again.',
    },
  );
}

/** An offset may be 8 KiB long. */
function excerpt(offset: Base64): string {
  return offset.length > 80 ? `${offset.slice(0, 80)}…` : offset;
}
