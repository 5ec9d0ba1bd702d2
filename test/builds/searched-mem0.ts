import { createHash } from "node:crypto";
import { type JsonObject, record } from "../../src/core/text/json.js";
import type { RawRequest } from "../clients/agent-engine.js";
import { localServer } from "../local-server.js";

/** A memory as Mem0 has it. */
export interface StubMemory {
  readonly id: string;
  readonly memory: string;
  readonly [field: string]: unknown;
}

/** A request that memprefix sent to a server, its body as parsed JSON. */
export interface SentRequest extends Pick<RawRequest, "method" | "url"> {
  readonly headers: JsonObject;
  readonly body: unknown;
}

/** Mem0's REST server: every search finds what `found` says, and what was found once is stored. */
export async function searchedMem0(found: () => readonly StubMemory[], watch: (request: RawRequest) => void) {
  const stored = new Map<string, StubMemory>();
  const answerTo = (method: string | undefined, url: string, body: JsonObject): unknown => {
    for (const memory of found()) stored.set(memory.id, memory);
    if (url === "/search") {
      const { user_id } = record(body["filters"]);
      return {
        results: found()
          .slice(0, Number(body["top_k"]))
          .map((memory) => ({ ...memory, user_id })),
      };
    }
    const id = decodeURIComponent(/^\/memories\/([^/?]+)/.exec(url)?.[1] ?? "");
    if (method === "GET") return stored.get(id) ?? null;
    if (method === "DELETE") stored.delete(id);
    const said = String((body["messages"] as readonly JsonObject[] | undefined)?.[0]?.["content"]);
    const added = createHash("sha256").update(said).digest("hex").slice(0, 9);
    return { results: [{ id: `added-${added}`, memory: said, event: "ADD" }] };
  };
  return localServer(async (request, response) => {
    const { method, url = "", headers } = request;
    const raw = Buffer.concat(await request.toArray()).toString("utf8");
    watch({ method, url, headers, raw });
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answerTo(method, url, record(JSON.parse(raw || "{}")))));
  });
}
