import { type ServiceError, status } from '@grpc/grpc-js';
import { type ErrorCode, UrutauError } from '@urutau/contract';
import type { CallStatus } from './data-connection.ts';

/** What a failed call means. A driver of the base sends no `urutau-error`; its gRPC status must do (A10, A13). */
export function fromServiceError(error: unknown, role: 'source' | 'sink', what: string): UrutauError {
  if (error instanceof UrutauError) return error;
  const { code, details, metadata } = error as ServiceError;
  if (code === undefined) return new UrutauError('internal', `${what}: ${String(error)}`, { cause: error });
  const wire = metadata?.get('urutau-error')[0];
  const known = typeof wire === 'string' ? UrutauError.fromWire(wire, details) : null;
  return known ?? new UrutauError(codeOf(code, role), `${what}: ${details}`, { cause: error });
}

/** Null when the call ended in order. */
export function failureOf(ended: CallStatus | UrutauError, role: 'source' | 'sink', what: string): UrutauError | null {
  if (ended instanceof UrutauError) return ended;
  return ended.code === status.OK ? null : fromServiceError(ended, role, what);
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
