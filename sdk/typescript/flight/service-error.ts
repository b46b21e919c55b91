import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { asUrutauError, ERRORS, type ErrorContext, type Failure, UrutauError } from '@urutau/contract';

/** A call that is not of this driver's role: UNIMPLEMENTED, as for any call that a server does not know (RPC-1). */
export class NotServed extends UrutauError {}

/**
 * HTTP/2 trailers are limited to 64 KiB in all. The details travel percent-encoded, up to nine bytes a character, so
 * that both together stay below. A list of failures beyond its share is cut, and says so.
 */
const WIRE_BYTES_MAX = 12 * 1024;
const DETAILS_CHARS_MAX = 4 * 1024;
const TEXT_CHARS_MAX = 256;

/** Any error as gRPC carries it: the code's status, the message, and `urutau-error` in the trailers (ERR-2). */
export function toServiceError(error: unknown): ServiceError {
  const urutau = asUrutauError(error);
  const metadata = new Metadata();
  metadata.set('urutau-error', wireText(urutau));
  return Object.assign(new Error(urutau.message), {
    code: urutau instanceof NotServed ? status.UNIMPLEMENTED : status[ERRORS[urutau.code].grpc],
    details: wellFormed(urutau.message.slice(0, DETAILS_CHARS_MAX)),
    metadata,
  });
}

/** grpc-js cannot encode half of a surrogate pair, which a cut may leave. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

function wireText(error: UrutauError): string {
  const whole = asAscii(error.toWire());
  if (whole.length <= WIRE_BYTES_MAX) return whole;
  const { failures = [], stored: _stored, ...context } = error.context;
  const short = { ...shortened(context), remedy: cut(error.remedy) };
  const fits = (kept: readonly Failure[]) => {
    const text = asAscii(new UrutauError(error.code, error.message, { ...short, failures: kept }).toWire());
    return text.length <= WIRE_BYTES_MAX ? text : null;
  };
  let text = fits([])!;
  for (let count = 1; count <= failures.length; count++) {
    const rest = failures.length - count;
    const more = { problem: `${rest} more of the kind`, remedy: 'Correct these first, then check again.' };
    const longer = fits([...failures.slice(0, count).map(shortened), ...(rest > 0 ? [more] : [])]);
    if (longer === null) break;
    text = longer;
  }
  return text;
}

function shortened<T extends ErrorContext | Failure>(fields: T): T {
  const entries = Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]);
  return Object.fromEntries(entries);
}

function cut(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX)}…`;
}

/** Metadata values are ASCII; JSON may write anything else as an escape. */
function asAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
