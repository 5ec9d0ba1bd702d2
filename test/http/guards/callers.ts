import { request } from "node:http";
import { newApiKey, newSecret } from "../../../src/service/base/tenant.js";
import { SHARED_MS, StoredApiKeys } from "../../../src/store/keys.js";
import { Connection } from "../../../src/store/sqlite/connection.js";
import type { Exchange, ServedApp } from "../server/served-app.js";

/** An exchange with the headers that came back. */
export interface FullExchange extends Exchange {
  readonly headers: Headers;
}

/** Somebody with a key. */
export interface Caller {
  readonly id: string;
  readonly key: string;
  send(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<FullExchange>;
}

/** Longer than requests share a read of keys, milliseconds. */
export const KNOWN_MS = SHARED_MS + 10;

/** Makes a key as another process would, waits as that one does, and gives the one who holds it. */
export function callerOf(app: Pick<ServedApp, "base" | "database">, tenant: string): Caller {
  const { id, key, secretDigest } = newApiKey();
  void inKeysOf(app, (keys) => keys.add({ id, tenant, secretDigest, label: null, createdAt: Date.now() }, newSecret()));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, KNOWN_MS);
  return {
    id,
    key,
    send: (method, path, body, headers = {}) =>
      sendWith(app, { authorization: `Bearer ${key}`, ...headers }, method, path, body),
  };
}

/** Revokes a key as another process would. */
export async function revoke(app: Pick<ServedApp, "database">, id: string): Promise<void> {
  await inKeysOf(app, (keys) => keys.revoke(id, Date.now()));
}

function inKeysOf<T>({ database }: Pick<ServedApp, "database">, work: (keys: StoredApiKeys) => Promise<T>): Promise<T> {
  const connection = Connection.to(database);
  const keys = new StoredApiKeys({
    read: async (text, values) => connection.read(text, values),
    take: async (text, values) => connection.read(text, values),
    write: async (statements) =>
      connection.transaction(() => {
        for (const one of statements) connection.run(one);
      }),
  });
  return work(keys).finally(() => connection.close());
}

/** Sends a request with these headers; JSON, unless the body is text. */
export async function sendWith(
  app: Pick<ServedApp, "base">,
  headers: Readonly<Record<string, string>>,
  method: string,
  path: string,
  body?: unknown,
): Promise<FullExchange> {
  const answer = await fetch(app.base + path, {
    method,
    headers: { connection: "close", "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const { status, headers: received } = answer;
  return { status, contentType: received.get("content-type"), text: await answer.text(), headers: received };
}

/** Sends a GET with any header, also those that `fetch` keeps to itself. */
export function rawGet(base: string, path: string, headers: Readonly<Record<string, string>>): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const sent = request(base + path, { headers: { ...headers, connection: "close" } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, contentType: answer.headers["content-type"] ?? null, text }),
      );
    });
    sent.on("error", reject).end();
  });
}
