import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readBody } from "../../../src/http/guards/body.js";

describe("a body without a length", () => {
  it("is refused once it is too large", async () => {
    const incoming = Readable.from([Buffer.alloc(6), Buffer.alloc(6)], { objectMode: false }) as IncomingMessage;
    const c = { req: { path: "/v1/compose", header: () => undefined } } as unknown as Parameters<typeof readBody>[0];
    let refused = 0;
    const onTooLarge = () => refused++;
    const body = await readBody(c, incoming, {
      maxBytes: 10,
      rate: { idleMs: 10_000, bytesPerSecond: null },
      clock: () => 0,
      onTooLarge,
    });
    expect(Buffer.isBuffer(body)).toBe(false);
    expect(refused).toBe(1);
  });
});
