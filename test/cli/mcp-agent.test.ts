import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { mcpTools } from "@anthropic-ai/sdk/helpers/beta/mcp";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "../docs/pages.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";
import { commands } from "./memprefix-command.js";

const memprefix = commands();
const mem0 = restMem0Server();

const result = z.object({ type: z.literal("tool_result"), content: z.array(z.object({ text: z.string() })) });
const sent = z.object({
  tools: z.array(z.object({ name: z.string() })).optional(),
  messages: z.array(z.object({ content: z.union([z.string(), z.array(z.unknown())]) })),
});
const found = z.object({ memories: z.array(z.object({ memory_id: z.string() })) });

/** A model that searches, forgets the first memory that it found, searches again, and then says what it read last. */
class Forgetting {
  /** What its tools answered. */
  readonly read: string[] = [];
  tools: readonly string[] = [];

  answer(body: string): object {
    const { tools, messages } = sent.parse(JSON.parse(body));
    if (tools !== undefined) this.tools = tools.map(({ name }) => name);
    // The runner says in `thread` what the newest message continues, and sends that one alone.
    const content = messages.at(-1)?.content ?? "";
    if (typeof content !== "string")
      this.read.push(...content.flatMap((block) => result.safeParse(block).data?.content[0]?.text ?? []));
    const id = `msg_${this.read.length}`;
    const use = this.#next();
    const block = use === null ? { type: "text", text: this.read.at(-1) } : { type: "tool_use", id, ...use };
    const usage = { input_tokens: 10, output_tokens: 10 };
    const stop = { stop_reason: use === null ? "end_turn" : "tool_use", stop_sequence: null };
    return { id, type: "message", role: "assistant", model: "stub-1", content: [block], usage, ...stop };
  }

  #next() {
    if (this.read.length === 1) {
      const [first] = found.parse(JSON.parse(this.read[0] ?? "")).memories;
      return { name: "forget_memory", input: { memory_id: first?.memory_id } };
    }
    return this.read.length > 2 ? null : { name: "search_memories", input: { query: "What does she eat?" } };
  }
}

it.each<[string, (address: string) => Transport]>([
  [
    "streamable HTTP",
    (address) => {
      const headers = { "x-memprefix-user": "ana" };
      return new StreamableHTTPClientTransport(new URL("/mcp", address), { requestInit: { headers } }) as Transport;
    },
  ],
  [
    "standard input and output",
    (address) => {
      const args = [join(ROOT, "dist/cli/main.js"), "mcp", "--url", address, "--user", "ana"];
      return new StdioClientTransport({ command: process.execPath, args });
    },
  ],
])("an agent, Anthropic's tool runner, searches and forgets over %s", async (_, transportTo) => {
  mem0.memories.set("m1", { id: "m1", memory: "Ana is vegetarian.", user_id: "ana" });
  const { address } = await memprefix.serve({ MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url });
  const client = new Client({ name: "agent", version: "1.0.0" });
  await client.connect(transportTo(address));
  try {
    const model = new Forgetting();
    const fetch = async (_url: unknown, init?: { readonly body?: unknown }) =>
      Response.json(model.answer(String(init?.body)));
    const anthropic = new Anthropic({ apiKey: "the stub's", fetch: fetch as typeof globalThis.fetch });
    const { tools } = await client.listTools();
    const answer = await anthropic.beta.messages
      .toolRunner({
        model: "stub-1",
        max_tokens: 500,
        messages: [{ role: "user", content: "Forget what Ana eats." }],
        tools: mcpTools(tools, client as Parameters<typeof mcpTools>[1]),
      })
      .runUntilDone();
    expect(model.tools).toEqual(tools.map(({ name }) => name));
    expect(model.read.map((text) => text.includes("Ana is vegetarian."))).toEqual([true, false, false]);
    expect(answer.content).toMatchObject([{ text: model.read[2] }]);
    expect(model.read[2]).toContain("memory_forgotten");
  } finally {
    await client.close();
  }
});
