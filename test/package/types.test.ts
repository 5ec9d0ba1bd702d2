import { describe, expect, it } from "vitest";
import { installedPackage } from "./installed-package.js";

/** The few lines that take the place of a list in the system message; Mem0 and OpenAI's client as far as they go there. */
const SWAP = `
import { createMemprefix } from "memprefix";

interface Found { results: { id: string; memory: string; score?: number }[] }
declare const memory: { search(query: string, options: { filters: { user_id: string }; topK: number }): Promise<Found> };

interface SystemMessage { role: "system"; content: string }
interface UserMessage { role: "user"; content: string | { type: "text"; text: string }[]; name?: string }
interface AssistantMessage { role: "assistant"; content?: string | null; tool_calls?: { id: string; type: "function" }[] }
interface ToolMessage { role: "tool"; content: string; tool_call_id: string }
type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;
declare const openai: { create(body: { messages: Message[] }, options: { headers: Record<string, string> }): Promise<unknown> };

const memprefix = createMemprefix();

export async function ask(userId: string, conversationId: string, history: Message[], question: string) {
  const asked: Message[] = [...history, { role: "user", content: question }];
  const { messages, engine } = await memprefix.compose({
    userId,
    conversationId,
    messages: asked,
    memories: await memory.search(question, { filters: { user_id: userId }, topK: 20 }),
  });
  return await openai.create({ messages }, { headers: { ...engine.headers } });
}
`;

const SURFACE = `
import {
  type ComposeAnswer, type ComposeOptions, createMemprefix, DatabaseOpenError, type FieldIssue, InvalidRequestError,
  MemorySourceError, type MemprefixClient, type MemprefixOptions, NotFoundError,
} from "memprefix";
import { compose, type Label, parseSection, prefixExact, ScopeState, type TokenCounter } from "memprefix/core";

type QueryMessage = import("memprefix").QueryMessage;

const options: MemprefixOptions = { dataDir: "data", source: { kind: "rest", url: "http://127.0.0.1:8000" }, searchTimeoutMs: 500 };
const client: MemprefixClient = createMemprefix(options);
const request: ComposeOptions = { userId: "ada", query: "Where?", topK: 3, annotations: "paper", agentId: null };
const answer: Omit<ComposeAnswer, "messages"> = await client.compose(request);
const asked: readonly QueryMessage[] = (await client.compose({ userId: "ada", query: "Where?" })).messages;
const role: "system" | "user" | undefined = asked[0]?.role;
const given: readonly { role: "user"; content: string }[] = (
  await client.compose({ userId: "ada", messages: [{ role: "user", content: "Where?" }] })
).messages;
const label: Label | undefined = answer.blocks[0]?.label;
const placement: "cached_prefix" | "new" | "carried_over" | "earlier_turn" | undefined = answer.blocks[0]?.placement;
const tokens: number = answer.plan.expectedCachedTokens + answer.plan.uncachedTokens;
const codes: string[] = answer.warnings.map(({ code }) => code);
const added: readonly { id: string; memory: string }[] = await client.add({ userId: "ada", memories: ["in Paris"] });
const { evicted, unknown } = await client.evict({ requestIds: [answer.requestId] });
const { difference } = await client.feedback({ userId: "ada", requestId: answer.requestId, cachedTokens: 3 });
const { deletedFromSource } = await client.forgetMemory({ userId: "ada", memoryId: "m-1" });
const issues = (error: unknown): readonly FieldIssue[] => (error instanceof InvalidRequestError ? error.issues : []);
const count: TokenCounter = (text) => text.length;
await client.forgetUser({ userId: "ada" });
await client.close();
export default [
  role, given, label, placement, tokens, codes, added, evicted, unknown, difference, deletedFromSource, issues, count, compose, parseSection,
  prefixExact, ScopeState, DatabaseOpenError, MemorySourceError, NotFoundError,
];
`;

const REMOTE = `
import { type MemprefixClient } from "memprefix";
import {
  type ComposeOptions, createMemprefixClient, MemprefixError, type RemoteMemprefix,
} from "memprefix/client";

const memprefix: RemoteMemprefix = createMemprefixClient({ url: "http://127.0.0.1:4600", apiKey: "mst_…", timeoutMs: 5_000 });
const asLibrary: Omit<MemprefixClient, "close"> = memprefix;
const request: ComposeOptions = { userId: "ada", query: "Where?", topK: 3, annotations: "paper", agentId: null };
const { messages, plan, engine } = await memprefix.compose(request, { timeoutMs: 0 });
const given: readonly { role: "user"; content: string }[] = (
  await asLibrary.compose({ userId: "ada", messages: [{ role: "user", content: "Where?" }] })
).messages;
const { answers } = await memprefix.composeBatch({ requests: [{ userId: "ada", query: "Where?" }] });
const ranks: readonly number[] = answers.flatMap((one) => ("answer" in one ? [one.rank] : []));
const why: readonly string[] = (await memprefix.explain({ userId: "ada", requestId: "r" })).words;
const issues = (error: unknown) => (error instanceof MemprefixError ? error.problem?.errors : null);
// @ts-expect-error the client's names are in camelCase
await memprefix.compose({ userId: "ada", query: "Where?", conversation_id: "c" });
// @ts-expect-error a client is of some service
createMemprefixClient({});
export default [messages, plan, engine, given, ranks, why, issues];
`;

const WRONG = `
import { createMemprefix } from "memprefix";
const memprefix = createMemprefix();
// @ts-expect-error a user is always named
await memprefix.compose({ query: "Where?" });
// @ts-expect-error the library's names are in camelCase
await memprefix.compose({ userId: "ada", query: "Where?", conversation_id: "c" });
// @ts-expect-error a message has a role
await memprefix.compose({ userId: "ada", messages: [{ content: "Where?" }] });
// @ts-expect-error there is no such retention
await memprefix.compose({ userId: "ada", query: "Where?", retention: "forever" });
// @ts-expect-error hosted Mem0 needs a key
createMemprefix({ source: { kind: "hosted" } });
`;

describe("the types of an installed memprefix", () => {
  const memprefix = installedPackage();

  it.each([
    ["let Mem0's list in the prompt be replaced by a few lines, with OpenAI's message types", SWAP],
    ["name everything that the library gives", SURFACE],
    ["let the client take the library's place", REMOTE],
    ["refuse what the library refuses", WRONG],
  ])("%s", async (_what, source) => {
    const ran = await memprefix.typeCheck(source, { lib: ["es2023"], skipLibCheck: true });
    expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});
