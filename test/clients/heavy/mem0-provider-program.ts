import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createMem0 } from "@mem0/vercel-ai-provider";
import type { LanguageModel } from "ai";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { type ClientProgram, FACTS, runProgram, type Session } from "../client-program.js";

/** Mem0's hosted API as far as its provider asks it: each search of a conversation finds one fact more. Gives its address. */
async function mem0Api(): Promise<string> {
  const searches = new Map<string, number>();
  const server = createServer(async (incoming, response) => {
    await incoming.toArray();
    const [, conversation = "", rest = ""] = /^\/(\d+)(.*)$/.exec(incoming.url ?? "") ?? [];
    response.setHeader("content-type", "application/json");
    if (rest !== "/v3/memories/search/") return response.end('{"message":"ok"}');
    const count = (searches.get(conversation) ?? 0) + 1;
    searches.set(conversation, count);
    const results = FACTS.slice(0, 1 + ((count - 1) % FACTS.length)).map((memory, at) => ({ id: `m${at}`, memory }));
    return response.end(JSON.stringify({ results: results.toReversed() }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs the provider, which searches its own Mem0: what it finds it puts in front of every prompt. */
export async function runMem0Provider(
  api: ClientProgram["api"],
  provider: "openai" | "anthropic",
  modelOf: (provided: ReturnType<typeof createMem0>) => LanguageModel,
): Promise<void> {
  const host = await mem0Api();
  const conversations = new WeakMap<Session, number>();
  let begun = 0;
  runProgram({
    client: "Mem0's AI SDK provider",
    api,
    uses: aiSdkUses((session) => {
      const conversation = conversations.get(session) ?? ++begun;
      conversations.set(session, conversation);
      const { base, headers } = session;
      const provided = createMem0({
        provider,
        mem0ApiKey: "none",
        apiKey: "the engine's",
        mem0Config: { user_id: "ana", host: `${host}/${conversation}` },
        config: { baseURL: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } },
      });
      return modelOf(provided);
    }),
  });
}
