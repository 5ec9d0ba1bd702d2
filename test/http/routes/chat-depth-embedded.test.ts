import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../src/engines/embedded/embedded-engine.js";
import { openAiUpstream } from "../../../src/engines/embedded/embedded-openai.js";
import { llamaMissing, tinyModel } from "../../engines/random-model/tiny-model.js";
import { composedOf, servedApp } from "../server/served-app.js";
import { ask, clientOf } from "./chat-client.js";

const missing = await llamaMissing();
const title = `adaptive depth before llama.cpp${missing === null ? "" : ` (skipped: ${missing})`}`;

describe.skipIf(missing !== null)(title, () => {
  const model = tinyModel();
  let engine: EmbeddedEngine;
  let server: Server;
  const upstream = { url: "" };
  beforeAll(async () => {
    engine = await openEmbeddedEngine({ modelPath: model.path, slots: 2, contextTokens: 1_024, threads: 1 });
    const fetch = openAiUpstream(engine);
    await new Promise<void>((listening) => {
      server = serve({ fetch, hostname: "127.0.0.1", port: 0 }, ({ port }: AddressInfo) => {
        upstream.url = `http://127.0.0.1:${port}/v1`;
        listening();
      }) as Server;
    });
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    await engine.close();
  });
  const app = servedApp({ upstream, environment: { MEMPREFIX_ENGINE_FAMILY: "vllm" } });

  const memories = Array.from({ length: 10 }, (_, at) => ({ id: `m${at}`, memory: `Ada has a cat, ${at * 3} kg.` }));
  const complete = async (request_id: string, adaptive_depth: unknown) => {
    const memprefix = { request_id, memories, adaptive_depth };
    // Random weights may draw the end of the answer as its first token; with a seed they draw the same one in every run.
    const body = { ...ask("How heavy?"), max_tokens: 2, temperature: 0, seed: 1, memprefix };
    const { data, response } = await clientOf(app).chat.completions.create(body).withResponse();
    const again = composedOf(await app.send("POST", "/compose", { user_id: "ada", request_id, query: "?" }));
    return { usage: data.usage, depth: response.headers.get("x-memprefix-depth"), plan: again.plan };
  };

  it("each prompt goes on in the slot of the one before, and is not computed again", async () => {
    const { usage, plan } = await complete("r1", { first_blocks: 2, entropy_nats: 0, time_limit_ms: 60_000 });
    const [first, second, third, ...more] = plan.depth?.probes ?? [];
    expect(plan.depth).toMatchObject({ retrieved: 10, given: 10, outcome: "unsure" });
    expect([first, second, third].map((probe) => probe?.blocks)).toEqual([2, 4, 8]);
    expect(more).toEqual([]);
    // What differs is what follows the blocks: each try had cached all that came before its own.
    const prompts = [first, second, third].map((probe) => probe?.prompt_tokens ?? Number.NaN);
    const cached = [second?.cached_tokens, third?.cached_tokens, usage?.prompt_tokens_details?.cached_tokens];
    for (const [at, before] of prompts.entries()) {
      expect(cached[at]).toBeGreaterThan(0.6 * before);
      expect(cached[at]).toBeLessThan(before);
    }
    // Random weights: what the entropy is says nothing of answers.
    for (const probe of plan.depth?.probes ?? []) expect(probe.entropy_nats).toBeGreaterThan(6);
  });

  it("an engine that counts as sure gets no more", async () => {
    const { usage, plan, depth } = await complete("r2", { first_blocks: 4, entropy_nats: 20, time_limit_ms: 60_000 });
    expect(depth).toMatch(/^given=4, retrieved=10, outcome=sure, entropies=\(\d+\.\d{3}\)$/);
    // The same prompt again: all of it is cached but what an engine always computes.
    expect(usage?.prompt_tokens).toBe(plan.depth?.probes[0]?.prompt_tokens);
    expect(usage?.prompt_tokens_details?.cached_tokens).toBe((usage?.prompt_tokens ?? 0) - 1);
  });
});
