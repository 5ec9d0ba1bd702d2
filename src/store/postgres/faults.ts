import pg from "pg";
import { type StoreFault, StoreUnavailableError } from "../store.js";

/** SQLSTATEs of each fault, or their first two characters (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const SQLSTATES: Readonly<Record<StoreFault, string>> = {
  // No connection or too many; shutting down, crashed, starting, the database dropped, the session idle; a new password, revoked rights, no
  // such database; prepared in another session, so there is a pooler.
  unreachable: "08 53300 57P01 57P02 57P03 57P04 57P05 28 3D 26000 42P05",
  // A timeout, or an operator; rolled back for another transaction; a lock.
  busy: "57014 40 55P03",
  full: "53100",
  "read-only": "25006",
  damaged: "XX001 XX002",
  failing: "53 58 XX",
};
const FAULTS = new Map(
  (Object.keys(SQLSTATES) as StoreFault[]).flatMap((fault) => SQLSTATES[fault].split(" ").map((code) => [code, fault])),
);

/** Node's error codes. */
const SOCKET_ERRORS = new Set(
  `ECONNREFUSED ECONNRESET ECONNABORTED EHOSTUNREACH ENETUNREACH ENETDOWN EHOSTDOWN ENOTFOUND EAI_AGAIN EPIPE
  ETIMEDOUT ENOENT EMFILE ENFILE`.split(/\s+/),
);

/** Messages of the driver's connection errors, which have no code. */
const DRIVER_ERRORS =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded|timeout expired|Query read timeout|The server does not support SSL)/;

/** The fault that caused an error of the server, the driver or a socket; null for other errors, such as bugs. */
export function faultOfPostgres(error: unknown): StoreFault | null {
  if (error instanceof StoreUnavailableError) return error.fault;
  if (error instanceof pg.DatabaseError) {
    const { code = "" } = error;
    return FAULTS.get(code) ?? FAULTS.get(code.slice(0, 2)) ?? null;
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

/** Whether the server rolled a transaction back in favor of another: a retry may succeed. */
export function isUndoneForAnother(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "40P01" || error.code === "40001");
}

export function isNameLost(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === "26000" || error.code === "42P05");
}
