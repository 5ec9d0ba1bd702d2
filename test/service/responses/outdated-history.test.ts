import { describe, expect, it, vi } from "vitest";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { openUpstream } from "../../../src/engines/upstream/upstream.js";
import { Chat, type ChatRequest } from "../../../src/service/chat/chat.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { messagesOfResponses, Responses } from "../../../src/service/responses/responses.js";
import { Gate, ownedMemories } from "../../hostile/owned-memories.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { answersResponses } from "../../http/routes/responses-engine.js";
import { ana } from "../compose/service-fixture.js";
import { around, SHARED, sharedDatabase } from "../shared-database.js";

const SECRET = "The blue safe opens with 4821";

describe.each(SHARED)(
  "a response's history on $name, of which another instance forgets a part after it was read",
  (on) => {
    const engine = openAiEngine();
    const database = sharedDatabase(on.name);
    const faults: unknown[] = [];
    const onFault = (error: unknown) => faults.push(error);
    const never = new AbortController().signal;

    /** Asks one service, without the responses that another may remember. */
    async function ask(service: Memprefix, input: string, previous: string | null, isComposed = true) {
      const upstream = openUpstream({ url: engine.url, timeoutMs: 10_000 });
      const { readUsage } = ENGINES.generic;
      const chat = new Chat({ upstream, readUsage, writeBack: false, onFault, clock: () => performance.now() });
      const body = { model: "stub-1", input, ...(previous === null ? {} : { previous_response_id: previous }) };
      const request: ChatRequest = {
        userId: ana,
        agentId: null,
        compose: isComposed ? readComposeOptions({ userId: ana, messages: messagesOfResponses(body) ?? [] }) : null,
        body,
        query: "",
        headers: [],
        writeBack: null,
      };
      const { body: chunks, status } = await new Responses(chat, onFault).complete(service.chats, request, never);
      let text = "";
      for await (const chunk of chunks) text += Buffer.from(chunk).toString("utf8");
      return { status, id: (JSON.parse(text) as { readonly id?: string }).id ?? "" };
    }

    /** An engine that keeps nothing, so that histories are memprefix's to send. */
    function keepsNothing(): void {
      const answer = answersResponses();
      engine.behave((request, response, usage) => {
        const raw = JSON.stringify({ ...(JSON.parse(request.raw) as object), store: false });
        return answer({ ...request, raw }, response, usage);
      });
    }

    it.skipIf(on.skip).each([
      ["composed", true],
      ["sent as it is", false],
    ])("is read again, and neither sent nor stored as it was: %s", async (_name, isComposed) => {
      keepsNothing();
      const source = ownedMemories();
      const id = source.keep("ana", SECRET);
      const one = await database.start(undefined, source);
      const read = new Gate();
      const other = await database.start(
        (store) =>
          around(store, async (method, call) => {
            const result = await call();
            if (method === "findRequest") await read.pass();
            return result;
          }),
        source,
      );
      const { id: first } = await ask(one, `Remember: ${SECRET}.`, null);
      await vi.waitFor(async () => expect(await one.chats.responses.find(ana, null, first)).not.toBeNull());
      const second = ask(other, "What did I say?", first, isComposed);
      await read.reached;
      await one.forgetMemory(ana, id);
      const sent = engine.requests.length;
      read.open();
      // The response is gone with what it quoted, and this engine kept nothing.
      expect((await second).status).toBe(400);
      const later = engine.requests.slice(sent).map(({ raw }) => raw);
      expect(later).toHaveLength(1);
      expect(later[0]).not.toContain("4821");
      expect(JSON.stringify(await one.exportUser(ana))).not.toContain("4821");
      expect(faults).toEqual([]);
    });
  },
);
