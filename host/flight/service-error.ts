import { type ServiceError, status } from '@grpc/grpc-js';
import { type ErrorCode, UrutauError } from '@urutau/contract';
import { type Mask, NO_MASK } from '../supervisor/mask.ts';
import type { CallStatus } from './data-connection.ts';

/**
 * What a failed call means, without secrets whatever the driver wrote. A driver of the base sends no `urutau-error`; its
 * gRPC status must do (A10, A13).
 */
export function fromServiceError(
  error: unknown,
  role: 'source' | 'sink',
  what: string,
  mask: Mask = NO_MASK,
): UrutauError {
  if (error instanceof UrutauError) return error;
  const { code, details, metadata } = error as ServiceError;
  const cause = maskedCause(error, mask);
  if (code === undefined) return new UrutauError('internal', `${what}: ${mask(String(error))}`, { cause });
  const wire = metadata?.get('urutau-error')[0];
  const known = typeof wire === 'string' ? UrutauError.fromWire(wire, details) : null;
  return known ? masked(known, mask) : new UrutauError(codeOf(code, role), `${what}: ${mask(details)}`, { cause });
}

/** `stored` and `offset` are read by programs, and stay as they are. */
function masked({ code, message, remedy, context }: UrutauError, mask: Mask): UrutauError {
  const { key, column, failures, ...rest } = context;
  return new UrutauError(code, mask(message), {
    ...rest,
    remedy: mask(remedy),
    ...(key === undefined ? {} : { key: mask(String(key)) }),
    ...(column === undefined ? {} : { column: mask(String(column)) }),
    ...(failures === undefined
      ? {}
      : {
          failures: failures.map((failure) => ({
            ...failure,
            problem: mask(failure.problem),
            remedy: mask(failure.remedy),
          })),
        }),
  });
}

/** Shown with --log-level debug: its stack begins with its message. */
export function maskedCause(error: unknown, mask: Mask): unknown {
  if (!(error instanceof Error)) return mask(String(error));
  return Object.assign(new Error(mask(error.message)), { stack: mask(error.stack ?? '') });
}

/** Null when the call ended in order. */
export function failureOf(
  ended: CallStatus | UrutauError,
  role: 'source' | 'sink',
  what: string,
  mask: Mask = NO_MASK,
): UrutauError | null {
  if (ended instanceof UrutauError) return ended;
  return ended.code === status.OK ? null : fromServiceError(ended, role, what, mask);
}

function codeOf(code: status, role: 'source' | 'sink'): ErrorCode {
  switch (code) {
    case status.UNAUTHENTICATED:
    case status.PERMISSION_DENIED:
      return 'auth-failed';
    case status.NOT_FOUND:
      return 'table-not-found';
    case status.FAILED_PRECONDITION:
      return role === 'source' ? 'position-lost' : 'precondition-failed';
    case status.INVALID_ARGUMENT:
      return role === 'source' ? 'config-invalid' : 'schema-unsupported';
    case status.UNIMPLEMENTED:
      return 'protocol-violation';
    case status.RESOURCE_EXHAUSTED:
      return 'row-too-large';
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.CANCELLED:
    case status.ABORTED:
      return role === 'source' ? 'source-unavailable' : 'sink-unavailable';
    default:
      return 'internal';
  }
}
