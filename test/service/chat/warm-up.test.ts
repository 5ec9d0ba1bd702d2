import { describe, expect, it, vi } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import { type Upstream, UpstreamError } from "../../../src/engines/upstream/upstream.js";
import { WarmUp } from "../../../src/service/chat/warm-up.js";

type UpstreamRequest = Parameters<Upstream["send"]>[0];

const HEAD = {
  messages: [{ role: "user", content: "." }],
  toolTexts: null,
  fields: { cache_salt: "s" },
  headers: { "x-request-id": "w" },
};
const asked = (body: Readonly<Record<string, unknown>> = {}) => ({
  api: APIS.chat,
  body,
  written: (sent: object) => JSON.stringify(sent),
  query: "?a=b",
  headers: [
    ["x-session", "7"],
    ["x-request-id", "the prompt's"],
    ["Idempotency-Key", "the prompt's"],
  ] as const,
});

/** An upstream that answers with these statuses in turn, and tells what it was sent. */
function answering(...statuses: readonly (number | Error)[]) {
  const sent: UpstreamRequest[] = [];
  const read: number[] = [];
  const send = async (request: UpstreamRequest) => {
    const status = statuses[sent.push(request) - 1] ?? 200;
    if (typeof status !== "number") throw status;
    const body = (async function* () {
      yield Buffer.from("{}");
      read.push(status);
    })();
    return { status, headers: [], body };
  };
  return { sent, read, send };
}

const TENANT = {};
let now = 0;
const warmUpOf = (upstream: Pick<Upstream, "send">) => new WarmUp(upstream, () => now);

describe("a warm-up", () => {
  it("is not repeated once an engine refused one, and is where it failed otherwise", async () => {
    const upstream = answering(new UpstreamError("e", { kind: "aborted" }), 503, 400);
    const warmUp = warmUpOf(upstream);
    for (const sent of [1, 2, 3, 3]) {
      const cancel = warmUp.start(TENANT, asked(), HEAD);
      expect(upstream.sent).toHaveLength(sent);
      await vi.waitFor(() => expect(upstream.read).toHaveLength(sent - 1));
      await cancel();
    }
  });

  it("that an engine refused is tried again after ten minutes, and at once for other tenants and models", async () => {
    const upstream = answering(400);
    const warmUp = warmUpOf(upstream);
    const sends = async (tenant: object, model: string) => {
      const before = upstream.sent.length;
      await warmUp.start(tenant, asked({ model }), HEAD)();
      return upstream.sent.length - before;
    };
    expect(await sends(TENANT, "m")).toBe(1);
    await vi.waitFor(async () => expect(await sends(TENANT, "m")).toBe(0));
    expect([await sends({}, "m"), await sends(TENANT, "other")]).toEqual([1, 1]);
    now += 10 * 60_000;
    expect(await sends(TENANT, "m")).toBe(1);
  });
});
