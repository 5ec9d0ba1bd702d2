import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventsOf, type StreamEvent } from "../../src/engines/event-stream.js";

async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function eventsIn(
  text: string | Uint8Array,
  sizes: readonly number[],
  maxBytes?: number,
): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of eventsOf(inChunks(Buffer.from(text), sizes), maxBytes)) events.push(event);
  return events;
}
const bytesOf = (events: readonly StreamEvent[]) => Buffer.concat(events.map(({ bytes }) => bytes));
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });

describe("the events of a stream", () => {
  it("together are its bytes, whatever they are and however they come", async () => {
    const pieces = fc.array(fc.constantFrom("data: ", "{}", "[DONE]", "\n", "\r\n", "\r", ":", "é", "x".repeat(20)));
    await fc.assert(
      fc.asyncProperty(
        pieces,
        fc.uint8Array({ maxLength: 9 }),
        sizes,
        fc.integer({ min: 1, max: 40 }),
        async (some, noise, cut, max) => {
          const bytes = Buffer.concat([Buffer.from(some.join("")), noise]);
          expect(bytesOf(await eventsIn(bytes, cut, max))).toEqual(bytes);
        },
      ),
    );
  });

  it("are the same ones however the bytes are cut", async () => {
    const breaks = fc.constantFrom("\n\n", "\r\n\r\n", "\n\r\n");
    const data = fc.oneof(
      fc.record({ delta: fc.string({ unit: "grapheme" }) }).map((value) => JSON.stringify(value)),
      fc.constant("[DONE]"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(data, breaks)), sizes, async (given, cut) => {
        const events = await eventsIn(given.map(([text, end]) => `data: ${text}${end}`).join(""), cut);
        expect(events.map(({ data, isLast }) => [data, isLast])).toEqual(
          given.map(([text]) => (text === "[DONE]" ? [undefined, true] : [JSON.parse(text), false])),
        );
      }),
    );
  });

  it("come as soon as they are whole", async () => {
    const seen: string[] = [];
    async function* slowly() {
      for (const part of ["data: 1\n", "\ndata: 2", "\n\n"]) {
        yield Buffer.from(part);
        seen.push(`after ${JSON.stringify(part)}`);
      }
    }
    for await (const { data } of eventsOf(slowly())) seen.push(String(data));
    expect(seen).toEqual(['after "data: 1\\n"', "1", 'after "\\ndata: 2"', "2", 'after "\\n\\n"']);
  });

  it("may have a comment, a name, data of several lines, none, or none that is JSON", async () => {
    const text = ': hello\n\nevent: x\ndata: {"a":\ndata:1}\n\nid: 7\n\ndata: oops\n\ndata: 3';
    expect((await eventsIn(text, [5])).map(({ data }) => data)).toEqual([undefined, { a: 1 }, undefined, undefined, 3]);
  });

  it("go on behind a line separator, which JSON leaves as it is", async () => {
    const data = { delta: "a\u2028b\u2029c" };
    expect((await eventsIn(`data: ${JSON.stringify(data)}\n\n`, [5])).map((event) => event.data)).toEqual([data]);
  });

  it("are not read where they are too long, and the next one is", async () => {
    const long = `data: "${"x".repeat(100)}"\n\n`;
    const events = await eventsIn(`${long}data: 1\n\n`, [8], 40);
    expect(events.map(({ data }) => data).filter((data) => data !== undefined)).toEqual([1]);
    expect(bytesOf(events).toString()).toBe(`${long}data: 1\n\n`);
  });
});
