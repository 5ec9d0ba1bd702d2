import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Unpackr } from "msgpackr";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as zeromq from "zeromq";
import { PublishingCache } from "../../../bench/publishing-cache.js";
import { startKvEvents } from "../../../src/cli/kv-events.js";
import { CachingEngine } from "../../../src/core/index.js";
import type { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { openUpstream } from "../../../src/engines/upstream/upstream.js";
import { KvExpectations } from "../../../src/service/learning/cache-readings.js";
import { EventPublisher } from "../../engines/upstream/kv-event-publisher.js";

const CAPACITY_TOKENS = 960;

/** An engine that publishes what it caches and evicts, as vLLM does. */
class PublishingEngine {
  readonly #server: Server;
  readonly #cache: PublishingCache;
  #port = 0;

  private constructor(
    readonly publisher: EventPublisher,
    blockTokens: number,
  ) {
    this.#cache = new PublishingCache(CAPACITY_TOKENS, blockTokens, false);
    this.#server = createServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString("utf8")) as { messages: unknown };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ tokens: tokensOf(body.messages) }));
    });
  }

  /** @param at the engine whose addresses it takes */
  static async start(blockTokens: number, at: PublishingEngine | null = null): Promise<PublishingEngine> {
    const portOf = (address = "") => Number(address.split(":").at(-1) ?? 0);
    const publisher = await new EventPublisher().listen(portOf(at?.publisher.endpoint), portOf(at?.publisher.replay));
    const engine = new PublishingEngine(publisher, blockTokens);
    engine.#server.listen(at?.port ?? 0, "127.0.0.1");
    await new Promise((listening) => engine.#server.once("listening", listening));
    return engine;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? this.#port;
  }

  /** Computes a prompt; gives how many of its tokens were cached. */
  async compute(messages: unknown): Promise<number> {
    const { cached, events } = this.#cache.compute(tokensOf(messages));
    const published = events.map((event) => {
      const block_hashes = event.hashes.map(BigInt);
      if (event.kind === "removed") return { type: "BlockRemoved", block_hashes, medium: "GPU" };
      const { parent, tokens: token_ids, blockTokens: block_size, medium } = event;
      const [parent_block_hash] = parent === null ? [null] : [BigInt(parent)];
      return { type: "BlockStored", block_hashes, parent_block_hash, token_ids, block_size, medium };
    });
    await this.publisher.publish(published);
    return cached;
  }

  async kill(): Promise<void> {
    this.#port = this.port;
    this.publisher.close();
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** A token for every three characters. */
function tokensOf(messages: unknown): number[] {
  const text = JSON.stringify(messages);
  return Array.from({ length: Math.ceil(text.length / 3) }, (_, at) =>
    Array.from(text.slice(3 * at, 3 * at + 3)).reduce((sum, character) => 256 * sum + character.charCodeAt(0), 0),
  );
}

describe("what an engine that publishes its events has cached of a prompt", () => {
  let engine: PublishingEngine;
  let cache: CachingEngine;
  let expectations: KvExpectations;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    engine = await PublishingEngine.start(16);
    cache = new CachingEngine();
    const upstream = openUpstream({ url: `http://127.0.0.1:${engine.port}/v1`, timeoutMs: 5_000 });
    const { endpoint, replay } = engine.publisher;
    stop = startKvEvents({
      sources: [{ endpoint, replay }],
      packages: { zeromq, unpackr: new Unpackr({ int64AsType: "bigint", useRecords: false }) },
      cache,
      upstream,
      now: Date.now,
      onFollowed() {},
      onFault() {},
    });
    expectations = new KvExpectations(cache, upstream, Date.now);
    await subscribed();
  });
  afterEach(async () => {
    await stop();
    await engine.kill();
  });

  /** Until the subscription has reached the engine, what it publishes is lost. */
  async function subscribed(): Promise<void> {
    const seen = cache.residents[0]?.newest ?? 0;
    await vi.waitFor(async () => {
      await engine.publisher.publish([]);
      expect(cache.residents[0]?.newest ?? 0).toBeGreaterThan(seen);
    });
  }

  /** A conversation's next prompts, each with what was expected and what was cached. */
  function conversation(name: string) {
    const messages = [{ role: "user", content: `${name} ${"is at home in the long street. ".repeat(6)}` }];
    return async () => {
      messages.push(
        { role: "assistant", content: `Noted, ${messages.length}.` },
        { role: "user", content: "And then?" },
      );
      const exact = await expectations.of({ model: "m", messages });
      const seen = cache.residents[0]?.newest ?? 0;
      const cached = await engine.compute(messages);
      // Events that come after the answer count for the next prompt.
      await vi.waitFor(() => expect(cache.residents[0]?.newest).toBeGreaterThan(seen), { interval: 2 });
      return { expected: exact?.cachedTokens() ?? null, cached };
    };
  }

  it("is known to the block, though conversations displace each other", async () => {
    const turns = ["Ada", "Bob", "Cem", "Dia"].map(conversation);
    const sent = [];
    for (let n = 0; n < 10; n++) for (const turn of turns) sent.push(await turn());
    expect(sent.filter(({ expected, cached }) => expected !== cached)).toEqual([]);
    expect(sent.filter(({ cached }) => cached > 0).length).toBeGreaterThan(10);
    expect(sent.filter(({ cached }) => cached === 0).length).toBeGreaterThan(3);
  });

  it.each([16, 32])(
    "is known again from the second prompt on of an engine that takes its place, with blocks of %i",
    async (blockTokens) => {
      const turn = conversation("Ada");
      for (let n = 0; n < 4; n++) await turn();
      await engine.kill();
      await vi.waitFor(() => expect((cache.residents[0] as ResidentBlocks).isWhole).toBe(false));
      engine = await PublishingEngine.start(blockTokens, engine);
      await subscribed();
      const sent = [];
      for (let n = 0; n < 5; n++) sent.push(await turn());
      expect(sent.slice(1).filter(({ expected, cached }) => expected !== cached)).toEqual([]);
      expect(sent[0]?.cached).toBe(0);
      expect(sent.at(-1)?.cached).toBeGreaterThan(3 * blockTokens);
    },
  );
});

describe("following an engine's events", () => {
  afterEach(() => vi.useRealTimers());

  it("stops while the engine has not answered yet where it publishes them", async () => {
    const engine = createServer(() => {}).listen(0, "127.0.0.1");
    await once(engine, "listening");
    const { port } = engine.address() as AddressInfo;
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    const stop = startKvEvents({
      sources: "auto",
      packages: { zeromq, unpackr: new Unpackr({ int64AsType: "bigint", useRecords: false }) },
      cache: new CachingEngine(),
      upstream: openUpstream({ url: `http://127.0.0.1:${port}/v1`, timeoutMs: 5_000 }),
      now: Date.now,
      onFollowed() {},
      onFault() {},
    });
    await once(engine, "request");
    await stop();
    engine.closeAllConnections();
    engine.close();
  });
});
