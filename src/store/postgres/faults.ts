import pg from "pg";
import { type StoreFault, StoreUnavailableError } from "../store.js";

/** By SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), or by its class, its first two characters. */
const FAULTS: Readonly<Record<string, StoreFault>> = {
  "08": "unreachable",
  // Cancelled by a time-out of ours, or by an operator.
  "57014": "busy",
  // Shut down, crashed, starting, the database dropped, the session ended for its idleness.
  "57P01": "unreachable",
  "57P02": "unreachable",
  "57P03": "unreachable",
  "57P04": "unreachable",
  "57P05": "unreachable",
  // Too many connections; passwords and grants that changed under way.
  "53300": "unreachable",
  "28": "unreachable",
  "3D": "unreachable",
  "53100": "full",
  "53": "failing",
  "58": "failing",
  // A standby, or a session that is read-only by a setting.
  "25006": "read-only",
  "40": "busy",
  "55P03": "busy",
  XX001: "damaged",
  XX002: "damaged",
  XX: "failing",
  // A pooler gave the transaction another session than the one that prepared the statement.
  "26000": "unreachable",
  "42P05": "unreachable",
};

/** Errors of sockets and names, as Node calls them. */
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

/** The driver's errors of connections have neither code nor class. */
const DRIVER_ERRORS =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded|timeout expired|Query read timeout|The server does not support SSL)/;

/** The fault that an error stands for: of the server, of the driver or of a socket; null for any other, a bug of ours included. */
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

/** Whether nothing more can be asked on the connection that failed so. */
export function isConnectionLost(error: unknown): boolean {
  return faultOfPostgres(error) === "unreachable";
}

/** Whether the server undid a transaction for another one's sake: it succeeds when it is run again. */
export function isUndoneForAnother(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "40P01" || error.code === "40001");
}

/** Whether a statement was prepared in another session than the one that it came to. */
export function isNameLost(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "26000" || error.code === "42P05");
}

/** The error as `Store` names it. */
export function namedFault(error: unknown): unknown {
  if (error instanceof StoreUnavailableError) return error;
  const fault = faultOfPostgres(error);
  return fault === null ? error : new StoreUnavailableError(fault, { cause: error });
}
