import Database from "better-sqlite3";
import { type StoreFault, StoreUnavailableError } from "../api/store.js";

/** By SQLite's primary result code (https://sqlite.org/rescode.html); an extended code begins with its primary one. */
const FAULTS: readonly (readonly [code: string, fault: StoreFault])[] = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_FULL", "full"],
  ["SQLITE_READONLY", "read-only"],
  ["SQLITE_PERM", "read-only"],
  ["SQLITE_IOERR", "failing"],
  ["SQLITE_CANTOPEN", "failing"],
  ["SQLITE_CORRUPT", "damaged"],
  ["SQLITE_NOTADB", "damaged"],
];

/** The fault that one of SQLite's errors stands for; null for any other error, a bug of ours included. */
export function faultOf(error: unknown): StoreFault | null {
  if (!(error instanceof Database.SqliteError)) return null;
  const { code } = error;
  return FAULTS.find(([primary]) => code === primary || code.startsWith(`${primary}_`))?.[1] ?? null;
}

/** Wraps a store, or the API keys: SQLite's errors of disks and locks become {@link StoreUnavailableError}. */
export function namingFaults<T extends object>(store: T): T {
  /** Wrapped methods by name. */
  const methods = new Map<string | symbol, unknown>();
  return new Proxy(store, {
    get(target, name) {
      const known = methods.get(name);
      if (known !== undefined) return known;
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const method = (...args: readonly unknown[]): unknown => {
        try {
          const result: unknown = Reflect.apply(member, target, args);
          return result instanceof Promise ? result.catch(throwNamed) : result;
        } catch (error) {
          throwNamed(error);
        }
      };
      methods.set(name, method);
      return method;
    },
  });
}

/** Throws the error as `Store` names it. */
export function throwNamed(error: unknown): never {
  const fault = faultOf(error);
  throw fault === null ? error : new StoreUnavailableError(fault, { cause: error });
}
