import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRestMem0 } from "../../../src/memory/rest-mem0.js";
import { startRestServer, type WireServer } from "../../memory/mem0-wire-server.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { composedOf, servedApp } from "../server/served-app.js";
import { ask } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

const WARNING = {
  code: "user_id_scoped",
  message:
    'nothing was found in Mem0, where this user is "memprefix/acme/ana"; memories kept there under the plain user id need a key of the tenant default',
};

describe("a key of a named tenant, before a Mem0 that has memories already", () => {
  let mem0: WireServer;
  beforeAll(async () => {
    mem0 = await startRestServer("mem0-key");
    const existing = { messages: [{ role: "user", content: "Ana drinks tea" }], user_id: "ana", infer: false };
    const headers = { "content-type": "application/json", "x-api-key": "mem0-key" };
    const kept = await fetch(`${mem0.url}/memories`, { method: "POST", headers, body: JSON.stringify(existing) });
    expect(kept.ok).toBe(true);
  });
  afterAll(() => mem0.close());

  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, source: () => openRestMem0({ url: mem0.url, apiKey: "mem0-key" }) });
  const asked = { user_id: "ana", query: "tea" };

  it("is told under what id nothing was found, and what kind of key finds it", async () => {
    const acme = composedOf(await callerOf(app, "acme").send("POST", "/compose", asked));
    expect(acme.blocks).toEqual([]);
    expect(acme.warnings).toEqual([WARNING]);
    const heir = composedOf(await callerOf(app, "default").send("POST", "/compose", asked));
    expect(heir.blocks).toHaveLength(1);
    expect(heir.warnings).toEqual([]);
  });

  it("is told the same of a user that nobody has, and nothing is said to the tenant default", async () => {
    const nobody = { ...asked, user_id: "nobody" };
    const acme = composedOf(await callerOf(app, "acme").send("POST", "/compose", nobody));
    expect(acme.warnings).toEqual([{ ...WARNING, message: WARNING.message.replace("/ana", "/nobody") }]);
    expect(composedOf(await callerOf(app, "default").send("POST", "/compose", nobody)).warnings).toEqual([]);
  });

  it("is told nothing where memories come in the request, or where some were seen before", async () => {
    const { send } = callerOf(app, "acme");
    const given = { ...asked, memories: [{ id: "m-1", memory: "Ana drinks tea" }] };
    for (const body of [given, asked]) expect(composedOf(await send("POST", "/compose", body)).warnings).toEqual([]);
  });

  it("is told in a chat's header too", async () => {
    const { key } = callerOf(app, "acme");
    const body = { ...ask("tea"), user: "ana" };
    const { status, headers } = await sendWith(app, { "x-api-key": key }, "POST", "/v1/chat/completions", body);
    expect(status).toBe(200);
    expect(headers.get("x-memprefix-warnings")).toBe("user_id_scoped");
  });
});
