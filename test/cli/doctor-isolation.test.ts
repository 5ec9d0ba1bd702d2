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

const BLOCK_CHARACTERS = 64;

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
  readonly reports?: boolean;
}

function engine({
  apartBy = ({ cache_salt }) => cache_salt,
  isStrict = true,
  replicas = 1,
  forgets,
  reports = true,
}: Engine = {}) {
  let prompts = 0;
  const caches = Array.from({ length: replicas }, () => new Set<string>());
  return async (request: IncomingMessage, response: ServerResponse) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "GET") return answer(200, { data: [{ id: "m", owned_by: "vllm", max_model_len: 8_192 }] });
    const sent = JSON.parse(await text(request)) as Sent;
    if (isStrict && sent.cache_salt !== undefined && typeof sent.cache_salt !== "string")
      return answer(400, { error: { message: "cache_salt: Input should be a valid string", type: "BadRequestError" } });
    const prompt = `<system>${sent.messages.map(({ content }) => content).join("<user>")}<assistant>`;
    const cache = caches[prompts++ % replicas] ?? new Set();
    if (forgets?.(prompts) === true) cache.clear();
    const whose = JSON.stringify(apartBy(sent, request) ?? null);
    const ends = Array.from(
      { length: Math.floor(prompt.length / BLOCK_CHARACTERS) },
      (_, at) => (at + 1) * BLOCK_CHARACTERS,
    );
    // A template's first block is everybody's.
    const keys = ends.map((end) => (end === BLOCK_CHARACTERS ? "template" : whose + prompt.slice(0, end)));
    const miss = keys.findIndex((key) => !cache.has(key));
    for (const key of keys) cache.add(key);
    const tokens = (blocks: number) => (blocks * BLOCK_CHARACTERS) / 4;
    const cached_tokens = tokens(miss < 0 ? keys.length : miss);
    const usage = {
      prompt_tokens: tokens(keys.length) + 3,
      completion_tokens: 1,
      ...(reports ? { prompt_tokens_details: { cached_tokens } } : {}),
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

  it("names the layer that ignores salts", async () => {
    const sound = await standIn(engine());
    const ignoring = await standIn(engine({ apartBy: () => null }));
    const dropping = await standIn(gateway(sound, dropsSalts));
    const keyed = await standIn(
      gateway(sound, (sent, { headers }) => ({ ...sent, cache_salt: headers.authorization ?? "none" })),
    );
    const of = (url: string, ...more: string[]) => doctor({ MEMPREFIX_UPSTREAM_URL: `${url}/v1` }, ...more);
    for (const [url, part, says, ...more] of [
      [ignoring, "engine", "the engine gets cache_salt and ignores it"],
      [dropping, "gateway", "a gateway drops or replaces cache_salt"],
      [keyed, "gateway", "a gateway drops or replaces cache_salt"],
      [dropping, "gateway", "a gateway drops or replaces cache_salt", "--engine-url", `${sound}/v1`],
      [await standIn(gateway(ignoring, dropsSalts)), "engine", "ignores it", "--engine-url", `${ignoring}/v1`],
    ] as const) {
      const { code, stdout, states } = await of(url, ...more);
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

  it.each([
    ["reports no cached tokens", { reports: false }],
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
        for (const { state } of await checkIsolation(settings, { model: null, engineUrl: null, keys: [] }))
          states.set(state, (states.get(state) ?? 0) + 1);
    }
    expect(states.get("broken")).toBeUndefined();
    expect(states.get("ok")).toBeGreaterThan(150);
  }, 120_000);
});
