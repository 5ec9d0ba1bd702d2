import type { IncomingMessage } from "node:http";
import { setTimeout } from "node:timers/promises";
import { beforeEach } from "vitest";
import { standIn } from "../stand-in.js";

/** A memory as Mem0's REST server has it. */
export interface ServedMemory {
  readonly id: string;
  readonly memory?: string | null;
  readonly user_id?: string;
  readonly [field: string]: unknown;
}

/** A request as it reached the server. */
export interface Mem0Request {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Mem0's self-hosted REST server on a socket of its own, by the routes and answers of its `server/main.py`; a fresh one for every test. */
export interface RestMem0Server {
  readonly url: string;
  /** What it keeps, by id. */
  readonly memories: Map<string, ServedMemory>;
  /** The ids that searches find, best first; null: all. */
  finds: readonly string[] | null;
  /** Whether it answers every request with 500. */
  isDown: boolean;
  /** Milliseconds that an answer takes; longer than any deadline: it hangs. */
  delayMs: number;
  /** How it says that there is no such memory: newer versions with 404, older ones with null; or what it says because it has no route for one. */
  missing: 404 | null | { readonly noRoute: unknown };
  readonly requests: Mem0Request[];
}

export function restMem0Server(): RestMem0Server {
  let url = "";
  const memories = new Map<string, ServedMemory>();
  const requests: Mem0Request[] = [];
  const fresh = () => ({ finds: null, isDown: false, delayMs: 0, missing: 404 }) as const;
  const state: Pick<RestMem0Server, keyof ReturnType<typeof fresh>> = fresh();

  const answerTo = ({ method, path, body }: Mem0Request): readonly [number, unknown] => {
    if (state.isDown) return [500, { detail: "down" }];
    if (method === "POST" && path === "/search") {
      const found = (state.finds ?? [...memories.keys()]).flatMap((id) => memories.get(id) ?? []);
      const most = typeof body["top_k"] === "number" ? body["top_k"] : 100;
      return [200, { results: found.slice(0, most) }];
    }
    const id = /^\/memories\/([^/?]+)$/.exec(path)?.[1];
    if (id === undefined || method !== "GET") return [404, { detail: "Not Found" }];
    if (typeof state.missing === "object" && state.missing !== null) return [404, state.missing.noRoute];
    const memory = memories.get(decodeURIComponent(id));
    if (memory !== undefined) return [200, memory];
    return state.missing === 404 ? [404, { detail: "Memory not found" }] : [200, null];
  };

  beforeEach(async () => {
    memories.clear();
    requests.length = 0;
    Object.assign(state, fresh());
    url = await standIn(async (incoming, response) => {
      const request = await readRequest(incoming);
      requests.push(request);
      const [status, body] = answerTo(request);
      if (state.delayMs > 0) await setTimeout(state.delayMs, null, { ref: false });
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });

  return Object.defineProperties(state, {
    url: { get: () => url },
    memories: { value: memories },
    requests: { value: requests },
  }) as typeof state & RestMem0Server;
}

async function readRequest(incoming: IncomingMessage): Promise<Mem0Request> {
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk;
  const { method = "", url = "" } = incoming;
  return { method, path: url, body: text === "" ? {} : JSON.parse(text) };
}
