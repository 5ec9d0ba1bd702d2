import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { checkIsolation } from "../../src/cli/isolation.js";
import { readSettings } from "../../src/cli/settings.js";
import { standIn } from "../stand-in.js";
import { commands } from "./memprefix-command.js";

interface Sent {
  readonly messages: readonly { readonly content: string }[];
  readonly cache_salt?: unknown;
}

const TOKEN_CHARACTERS = 4;

/** An engine with a true prefix cache, in blocks. */
interface Engine {
  /** What keeps prompts apart. Default: the salt. */
  readonly apartBy?: (sent: Sent, request: IncomingMessage) => unknown;
  /** Whether it rejects a salt that is not text, as vLLM and SGLang do. Default: yes. */
  readonly isStrict?: boolean;
  /** Replicas with caches of their own, which requests reach in turn. Default 1. */
  readonly replicas?: number;
  /** Whether a prompt is evicted, by its number. */
  readonly forgets?: (prompt: number) => boolean;
  /** Default: as "counts" does; "positive": no count of 0, as some versions of vLLM. */
  readonly reports?: "counts" | "positive" | "none";
  /** Default 128, as vLLM on CPUs. */
  readonly blockTokens?: number;
  /** Tokens before everybody's prompt, which no salt keeps apart. */
  readonly templateTokens?: number;
  /** Gets what each prompt cost. */
  readonly onPrompt?: (computedTokens: number) => void;
  readonly onModels?: () => void;
}

function engine({
  apartBy = ({ cache_salt }) => cache_salt,
  isStrict = true,
  replicas = 1,
  forgets,
  reports = "counts",
  blockTokens = 128,
  templateTokens = 16,
  onPrompt,
  onModels,
}: Engine = {}) {
  const block = blockTokens * TOKEN_CHARACTERS;
  const template = "#".repeat(templateTokens * TOKEN_CHARACTERS);
  let prompts = 0;
  const caches = Array.from({ length: replicas }, () => new Set<string>());
  return async (request: IncomingMessage, response: ServerResponse) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "GET") {
      onModels?.();
      return answer(200, { data: [{ id: "m", owned_by: "vllm", max_model_len: 8_192 }] });
    }
    const sent = JSON.parse(await text(request)) as Sent;
    if (isStrict && sent.cache_salt !== undefined && typeof sent.cache_salt !== "string")
      return answer(400, { error: { message: "cache_salt: Input should be a valid string", type: "BadRequestError" } });
    const prompt = `${template}${sent.messages.map(({ content }) => content).join("<user>")}<assistant>`;
    const cache = caches[prompts++ % replicas] ?? new Set();
    if (forgets?.(prompts) === true) cache.clear();
    const whose = JSON.stringify(apartBy(sent, request) ?? null);
    const ends = Array.from({ length: Math.floor(prompt.length / block) }, (_, at) => (at + 1) * block);
    const keys = ends.map((end) => (end <= template.length ? "" : whose) + prompt.slice(0, end));
    const miss = keys.findIndex((key) => !cache.has(key));
    for (const key of keys) cache.add(key);
    const cached_tokens = (miss < 0 ? keys.length : miss) * blockTokens;
    const prompt_tokens = Math.ceil(prompt.length / TOKEN_CHARACTERS);
    onPrompt?.(prompt_tokens - cached_tokens);
    const isReported = reports === "counts" || (reports === "positive" && cached_tokens > 0);
    const usage = {
      prompt_tokens,
      completion_tokens: 1,
      ...(isReported ? { prompt_tokens_details: { cached_tokens } } : {}),
    };
    return answer(200, {
      choices: [{ index: 0, message: { role: "assistant", content: "yes" }, finish_reason: "stop" }],
      usage,
    });
  };
}

/** A gateway that changes what it forwards. */
function gateway(url: string, changed: (sent: Sent, request: IncomingMessage) => object) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const { method = "GET" } = request;
    const sent = method === "GET" ? {} : { body: JSON.stringify(changed(JSON.parse(body) as Sent, request)) };
    const answer = await fetch(url + (request.url ?? ""), { method, ...sent });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  };
}

const dropsSalts = ({ cache_salt: _dropped, ...sent }: Sent) => sent;

describe("memprefix doctor --isolation", () => {
  const memprefix = commands();
  const doctor = async (environment: Readonly<Record<string, string>>, ...more: readonly string[]) => {
    const settings = { MEMPREFIX_SOURCE: "none", MEMPREFIX_ENGINE_FAMILY: "vllm", MEMPREFIX_PORT: "1", ...environment };
    const { code, stdout } = await memprefix.run(["doctor", "--isolation", ...more], { environment: settings });
    return {
      code,
      stdout,
      states: [...stdout.matchAll(/^(\w+) +(ok|broken|unknown) /gm)].map(([, part, state]) => [part, state]),
    };
  };

  it("finds nothing to change where tenants and salts are apart", async () => {
    const upstream = `${await standIn(engine())}/v1`;
    const { code, stdout, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: upstream });
    expect([code, states]).toEqual([0, [["engine", "ok"]]]);
    expect(stdout).toMatch(/: \d+ of the \d{3,} tokens that hit for one tenant hit for another, or for another salt\n/);
    expect(stdout).toMatch(/\nNothing to change\.\n$/);
  });

  it("asks for the models once, and computes as few tokens as a few blocks need", async () => {
    let [models, prompts, computed] = [0, 0, 0];
    const onPrompt = (tokens: number) => {
      prompts += 1;
      computed += tokens;
    };
    const upstream = `${await standIn(engine({ onModels: () => models++, onPrompt }))}/v1`;
    const { states } = await doctor({ MEMPREFIX_UPSTREAM_URL: upstream, MEMPREFIX_ENGINE_FAMILY: "" });
    expect(states).toEqual([["engine", "ok"]]);
    expect([models, prompts]).toEqual([1, 4]);
    expect(computed).toBeLessThan(1_500);
  });

  it.each<[string, Engine]>([
    ["with blocks of 16 tokens", { blockTokens: 16 }],
    ["that reuses prompts in steps of 528 tokens", { blockTokens: 528 }],
    ["that leaves counts of 0 out", { reports: "positive" }],
    ["with a long template that no salt keeps apart", { templateTokens: 1_024 }],
  ])("tells apart and shared caches of an engine %s", async (_what, kind) => {
    for (const [apartBy, state] of [
      [undefined, "ok"],
      [() => null, "broken"],
    ] as const) {
      const upstream = `${await standIn(engine({ ...kind, ...(apartBy === undefined ? {} : { apartBy }) }))}/v1`;
      for (const run of ["cold", "warm"])
        expect([run, (await doctor({ MEMPREFIX_UPSTREAM_URL: upstream })).states]).toEqual([run, [["engine", state]]]);
    }
  });

  it("names the layer that ignores salts", async () => {
    const sound = await standIn(engine());
    const ignoring = await standIn(engine({ apartBy: () => null }));
    const dropping = await standIn(gateway(sound, dropsSalts));
    const keyed = await standIn(
      gateway(sound, (sent, { headers }) => ({ ...sent, cache_salt: headers.authorization ?? "none" })),
    );
    for (const [url, part, says] of [
      [ignoring, "engine", "the engine gets cache_salt and ignores it"],
      [dropping, "gateway", "a gateway drops or replaces cache_salt"],
      [keyed, "gateway", "a gateway drops or replaces cache_salt"],
    ] as const) {
      const { code, stdout, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: `${url}/v1` });
      expect([says, code, states]).toEqual([says, 1, [[part, "broken"]]]);
      expect(stdout).toContain(says);
    }
  });

  it("finds tenants behind one upstream key of an engine that takes no salt", async () => {
    const upstream = `${await standIn(engine({ apartBy: (_sent, { headers }) => headers.authorization }))}/v1`;
    const environment = {
      MEMPREFIX_UPSTREAM_URL: upstream,
      MEMPREFIX_UPSTREAM_API_KEY: "sk-1",
      MEMPREFIX_ENGINE_FAMILY: "openai",
    };
    const { code, stdout, states } = await doctor(environment);
    expect([code, states]).toEqual([1, [["memprefix", "broken"]]]);
    expect(stdout).toContain("memprefix sends no salt to the family openai, whose tenants share one upstream key");
    expect(stdout).toContain("1. give each tenant an engine, or an upstream key, of its own");
  });

  it("tries keys in the running service: those of one tenant share a cache", async () => {
    const upstream = { MEMPREFIX_UPSTREAM_URL: `${await standIn(engine())}/v1`, MEMPREFIX_ENGINE_FAMILY: "vllm" };
    const keyOf = async (tenant: string) => (await memprefix.run(["keys", "add", "--tenant", tenant])).stdout.trim();
    const [acme, same, other] = [await keyOf("acme"), await keyOf("acme"), await keyOf("other")];
    const { address } = await memprefix.serve(upstream);
    const environment = { ...upstream, MEMPREFIX_PORT: new URL(address).port };
    for (const [keys, state] of [
      [[acme, other], "ok"],
      [[acme, same], "broken"],
      [[other, other], "broken"],
      [["mst_nobody", other], "unknown"],
    ] as const) {
      const { states, stdout } = await doctor(environment, "--keys", keys.join(","));
      expect([keys, states[0]?.[1]]).toEqual([keys, state]);
      if (state === "broken") expect(stdout).toContain("the keys share one cache");
    }
  });

  it.each<[string, Engine]>([
    ["reports no cached tokens", { reports: "none" }],
    ["caches nothing", { forgets: () => true }],
  ])("says nothing of an engine that %s", async (_what, wrong) => {
    const { code, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: `${await standIn(engine(wrong))}/v1` });
    expect([code, states]).toEqual([0, [["engine", "unknown"]]]);
  });

  it("raises no false alarm in 200 runs, also behind a router of replicas, and with a cache that loses prompts", async () => {
    const states = new Map<string, number>();
    for (const [runs, made] of [
      [100, {}],
      [50, { replicas: 3 }],
      [50, { forgets: (prompt: number) => (prompt * 2_654_435_761) % 10 < 3 }],
    ] as const) {
      const url = `${await standIn(engine(made))}/v1`;
      const settings = readSettings({
        MEMPREFIX_SOURCE: "none",
        MEMPREFIX_ENGINE_FAMILY: "vllm",
        MEMPREFIX_UPSTREAM_URL: url,
      });
      for (let run = 0; run < runs; run++)
        for (const { state } of await checkIsolation(settings, { model: null, keys: [] }))
          states.set(state, (states.get(state) ?? 0) + 1);
    }
    expect(states.get("broken")).toBeUndefined();
    expect(states.get("ok")).toBeGreaterThan(150);
  }, 120_000);
});
