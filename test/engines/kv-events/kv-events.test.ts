import { Unpackr } from "msgpackr";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as zeromq from "zeromq";
import { apartBy, followKvEvents, type Heartbeat } from "../../../src/engines/kv-events/kv-events.js";
import { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { EventPublisher, startFreezingProxy } from "../upstream/kv-event-publisher.js";

const unpackr = new Unpackr({ int64AsType: "bigint", useRecords: false });
const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);
/** As vLLM 0.32 says it: a map, with hashes that no number of JavaScript's holds. */
const stored = (hashes: bigint[], parent: bigint | null, tokens: number[], salt: string | null = null) => ({
  type: "BlockStored",
  block_hashes: hashes,
  parent_block_hash: parent,
  token_ids: tokens,
  block_size: 4,
  lora_id: null,
  medium: "GPU",
  lora_name: null,
  extra_keys: hashes.map((_, at) => (at === 0 && parent === null && salt !== null ? [salt] : null)),
  group_idx: 0,
  kv_cache_spec_kind: "full_attention",
});
const BIG = 2n ** 63n + 1n;

describe("events of an engine's cache", () => {
  let publisher: EventPublisher;
  let blocks: ResidentBlocks;
  let followed: Promise<void>;
  let ending: AbortController;
  const faults: unknown[] = [];

  const follow = (replay: string | null = publisher.replay, endpoint = publisher.endpoint, heartbeat?: Heartbeat) => {
    ending = new AbortController();
    blocks = new ResidentBlocks();
    const sink = {
      take: blocks.take.bind(blocks),
      lost: () => blocks.forget(false),
      began: () => blocks.forget(true),
    };
    const packages = { zeromq, unpackr };
    const onFault = (error: unknown) => {
      faults.push(error);
    };
    followed = followKvEvents({ endpoint, replay }, sink, packages, ending.signal, onFault, heartbeat);
  };
  const resident = (tokens: number[], salt: string | null = null) =>
    blocks.residentTokens(blocks.chainsOf([...tokens, 0], salt === null ? null : apartBy([salt])));
  /** Until a subscription has reached the publisher, what it says is lost: says it until it was heard. */
  const heard = (tokens: number) => vi.waitFor(() => expect(resident(upTo(100))).toBe(tokens));

  beforeEach(async () => {
    faults.length = 0;
    publisher = await new EventPublisher().listen();
  });
  afterEach(async () => {
    ending.abort();
    await followed;
    publisher.close();
  });

  it("tell what is cached, from what was published before on", async () => {
    await publisher.publish([stored([BIG, BIG + 1n], null, upTo(8))]);
    follow();
    await heard(8);
    expect(blocks.isWhole).toBe(true);
    await publisher.publish([{ type: "BlockRemoved", block_hashes: [BIG + 1n], medium: "GPU", group_idx: 0 }]);
    await heard(4);
    expect(faults).toEqual([]);
  });

  it("are followed once somebody publishes, where at first nobody did: said once, with the likely reason", async () => {
    const [port, replayPort] = [publisher.endpoint, publisher.replay].map((each) => Number(each.split(":").at(-1)));
    const refusing = publisher.endpoint;
    publisher.close();
    follow();
    const refused = () => faults.map(String).filter((fault) => fault.includes(`nobody publishes at ${refusing}`));
    await vi.waitFor(() => expect(refused()).toHaveLength(1));
    expect(refused()[0]).toContain("tcp://*:PORT");
    publisher = await new EventPublisher().listen(port, replayPort);
    await publisher.publish([stored([1n], null, upTo(4))]);
    await vi.waitFor(async () => {
      // What is said before the follower is connected again is lost; what comes then lets it ask for that.
      await publisher.publish([]);
      expect(resident(upTo(100))).toBe(4);
    });
    expect(refused()).toHaveLength(1);
  });

  it("are asked for again where some were lost on the way", async () => {
    await publisher.publish([stored([1n], null, upTo(4))]);
    follow();
    await heard(4);
    await publisher.publish([stored([2n], 1n, upTo(4, 4))], true);
    await publisher.publish([stored([3n], 2n, upTo(4, 8))]);
    await heard(12);
    expect(blocks.isWhole).toBe(true);
  });

  it("leave unknown what cannot be had again, and are right about what comes after", async () => {
    await publisher.publish([stored([1n], null, upTo(4))]);
    follow();
    await heard(4);
    await publisher.publish([stored([2n], 1n, upTo(4, 4))], true);
    publisher.forget(2);
    await publisher.publish([stored([9n], null, upTo(4, 50))]);
    await vi.waitFor(() => expect(resident(upTo(4, 50))).toBe(4));
    expect(resident(upTo(8))).toBeNull();
    expect(blocks.isWhole).toBe(false);
  });

  it("are read on where what is sent again comes to no end, and the signal ends that, too", async () => {
    await publisher.publish([stored([1n], null, upTo(4))]);
    publisher.isEndless = true;
    follow();
    await heard(4);
    ending.abort();
    await followed;
    expect(faults).toEqual([]);
    publisher.isEndless = false;
    await new Promise((resolve) => setTimeout(resolve, 50));
    publisher.isEndless = true;
    follow();
    await heard(4);
    const started = performance.now();
    const clock = vi.spyOn(performance, "now").mockReturnValue(started + 120_000);
    await vi.waitFor(() => expect(String(faults[0])).toContain("does not come to the end"));
    clock.mockRestore();
    publisher.isEndless = false;
    await vi.waitFor(async () => {
      await publisher.publish([stored([2n], null, upTo(4, 50))]);
      expect(resident(upTo(4, 50))).toBe(4);
    });
  });

  it("begin anew with an engine that was started again", async () => {
    await publisher.publish([stored([1n, 2n], null, upTo(8))]);
    await publisher.publish([]);
    follow();
    await heard(8);
    publisher.restart();
    await publisher.publish([stored([1n], null, upTo(4))]);
    await heard(4);
    expect(blocks.isWhole).toBe(true);
    await publisher.publish([{ type: "AllBlocksCleared" }]);
    await heard(0);
  });

  it("begin anew with another engine at the address, whose first ones were lost, though its numbers go on from the old one's", async () => {
    await publisher.publish([stored([1n, 2n], null, upTo(8))]);
    follow();
    await heard(8);
    const [port, replayPort] = [publisher.endpoint, publisher.replay].map((each) => Number(each.split(":").at(-1)));
    publisher.close();
    publisher = await new EventPublisher().listen(port, replayPort);
    await publisher.publish([stored([5n], null, upTo(4, 50))], true);
    await publisher.publish([stored([6n], 5n, upTo(4, 54))], true);
    // Until the subscription is there again, each is lost.
    for (let hash = 7n; resident(upTo(12, 50)) !== 12; hash++) {
      await publisher.publish([stored([hash], 6n, upTo(4, 58))]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(resident(upTo(8))).toBe(0);
    expect(blocks.isWhole).toBe(true);
  });

  it("are read in every form: arrays with fields left out, bytes as hashes, other groups, adapters, unknown kinds", async () => {
    const hash = Buffer.from("a-hash-of-32-bytes");
    await publisher.publish([
      ["BlockStored", [hash], null, upTo(4), 4],
      ["BlockStored", [7], hash, upTo(4, 4), 4, null, "GPU", null, [null]],
      { ...stored([8n], null, upTo(4, 80)), group_idx: 1 },
      { ...stored([10n], null, upTo(4, 20), "salt") },
      { ...stored([11n], null, upTo(4, 30)), extra_keys: null, lora_id: 3, lora_name: "sql" },
      { type: "SomethingNew", block_hashes: [1] },
      null,
      [],
    ]);
    follow();
    await heard(8);
    expect(resident(upTo(4, 80))).toBe(0);
    expect(resident(upTo(4, 20), "salt")).toBe(4);
    expect(resident(upTo(4, 20), "other")).toBe(0);
    expect(resident(upTo(4, 30), "sql")).toBe(4);
    expect(resident(upTo(4, 30))).toBe(0);
  });

  it("are unknown once the publisher's machine is gone, without a word, and stay known while it is only quiet", async () => {
    const proxy = await startFreezingProxy(publisher.endpoint);
    follow(null, proxy.endpoint, { heartbeatInterval: 50, heartbeatTimeout: 500 });
    // Live, so that the connection is there.
    await vi.waitFor(async () => {
      await publisher.publish([stored([1n], null, upTo(4))]);
      expect(resident(upTo(4))).toBe(4);
    });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect([resident(upTo(4)), proxy.connections]).toEqual([4, 1]);
    proxy.freeze();
    await vi.waitFor(() => expect(resident(upTo(4))).toBeNull(), 5_000);
    proxy.stop();
  });

  it("that are garbage are a fault once, and leave what is cached unknown until it is told again", async () => {
    await publisher.publish([stored([1n], null, upTo(4))]);
    follow(null);
    for (const garbage of [Buffer.alloc(0), Buffer.from("<html>"), Buffer.from([0x92, 1, 2]), Buffer.from([0xc1])])
      await vi.waitFor(async () => {
        await publisher.publishBytes(garbage);
        expect(faults.length).toBeGreaterThan(0);
      });
    expect(resident(upTo(4))).toBeNull();
    await vi.waitFor(async () => {
      await publisher.publish([stored([1n], null, upTo(4))]);
      expect(resident(upTo(4))).toBe(4);
    });
    expect(faults).toHaveLength(1);
  });
});
