import pg from "pg";
import { type StoreFault, StoreUnavailableError } from "../store.js";

/** Faults by SQLSTATE, or by its first two characters (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const FAULTS: Readonly<Record<string, StoreFault>> = {
  "08": "unreachable",
  // A timeout, or an operator.
  "57014": "busy",
  // Shutting down, crashed, starting, the database dropped, the session idle.
  "57P01": "unreachable",
  "57P02": "unreachable",
  "57P03": "unreachable",
  "57P04": "unreachable",
  "57P05": "unreachable",
  // Too many connections, a new password, revoked rights.
  "53300": "unreachable",
  "28": "unreachable",
  "3D": "unreachable",
  "53100": "full",
  "53": "failing",
  "58": "failing",
  "25006": "read-only",
  "40": "busy",
  "55P03": "busy",
  XX001: "damaged",
  XX002: "damaged",
  XX: "failing",
  // Prepared in another session: there is a pooler.
  "26000": "unreachable",
  "42P05": "unreachable",
};

/** Node's error codes. */
const SOCKET_ERRORS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EHOSTDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
  "ENOENT",
  "EMFILE",
  "ENFILE",
]);

/** Messages of the driver's connection errors, which have no code. */
const DRIVER_ERRORS =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded|timeout expired|Query read timeout|The server does not support SSL)/;

/** The fault that caused an error of the server, the driver or a socket; null for other errors, such as bugs. */
export function faultOfPostgres(error: unknown): StoreFault | null {
  if (error instanceof StoreUnavailableError) return error.fault;
  if (error instanceof pg.DatabaseError) {
    const { code = "" } = error;
    return FAULTS[code] ?? FAULTS[code.slice(0, 2)] ?? null;
  }
  if (!(error instanceof Error)) return null;
  if (error instanceof AggregateError) return faultOfPostgres(error.errors[0]);
  const isSocket = "code" in error && SOCKET_ERRORS.has(String(error.code));
  return isSocket || DRIVER_ERRORS.test(error.message) ? "unreachable" : null;
}

/** Whether the connection cannot be used again. */
export function isConnectionLost(error: unknown): boolean {
  return faultOfPostgres(error) === "unreachable";
}

/** Whether the server undid a transaction in favor of another one: a retry may succeed. */
export function isUndoneForAnother(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "40P01" || error.code === "40001");
}

export function isNameLost(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "26000" || error.code === "42P05");
}

/** The error that `Store` rejects with. */
export function namedFault(error: unknown): unknown {
  if (error instanceof StoreUnavailableError) return error;
  const fault = faultOfPostgres(error);
  return fault === null ? error : new StoreUnavailableError(fault, { cause: error });
}
