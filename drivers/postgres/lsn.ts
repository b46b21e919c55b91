import { UrutauError } from '@urutau/sdk';

declare const lsnBrand: unique symbol;

/** A WAL byte position. Branded so that a transaction id or a byte count cannot be acknowledged by mistake. */
export type Lsn = bigint & { readonly [lsnBrand]: true };

/** Reads the server's text, such as `16/B374D848`. Throws `protocol-violation` for anything else. */
export function parseLsn(text: string): Lsn {
  const halves = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  if (halves === null) {
    throw new UrutauError('protocol-violation', `expected a WAL position such as 16/B374D848; came ${text}`);
  }
  return ((BigInt(`0x${halves[1]}`) << 32n) | BigInt(`0x${halves[2]}`)) as Lsn;
}

/** The text that the server prints and takes. */
export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffff_ffffn).toString(16)}`.toUpperCase();
}
