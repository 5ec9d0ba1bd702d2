import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventsOf, type StreamEvent } from "../../../src/engines/upstream/answer-body.js";
import { inChunks, chunkSizes as sizes } from "./chunks.js";

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
    const breaks = fc.constantFrom("\n\n", "\r\n\r\n", "\n\r\n", "\r\r");
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

  it("come as soon as they are whole, also where lines end with CR", async () => {
    const seen: string[] = [];
    async function* slowly() {
      for (const part of ["data: 1\r", "\rdata: 2\r\r", "data: 3", "\r\r"]) {
        yield Buffer.from(part);
        seen.push(`after ${JSON.stringify(part)}`);
      }
    }
    for await (const { data } of eventsOf(slowly())) seen.push(String(data));
    const [one, two, three, four] = ["data: 1\r", "\rdata: 2\r\r", "data: 3", "\r\r"].map((part) =>
      JSON.stringify(part),
    );
    expect(seen).toEqual([`after ${one}`, "1", "2", `after ${two}`, `after ${three}`, "3", `after ${four}`]);
  });

  it("may end with lines of all three kinds, mixed, and begin with a byte order mark", async () => {
    for (const end of ["\n", "\r", "\r\n"]) {
      const text = `\ufeffdata: 1${end}${end}event: x${end}data: {"a":${end}data:"\ufeffb"}${end}${end}data: [DONE]${end}${end}`;
      const whole = Buffer.from(text);
      for (let cut = 1; cut < whole.length; cut++) {
        const events = await eventsIn(whole, [cut, whole.length]);
        expect(bytesOf(events)).toEqual(whole);
        expect(events.map(({ data, isLast }) => [data, isLast])).toEqual([
          [1, false],
          [{ a: "\ufeffb" }, false],
          [undefined, true],
        ]);
      }
    }
    const mixed = "data: 1\r\n\ndata: 2\n\rdata: 3\r\n\rdata: 4\r\ndata: 5\n\n";
    for (const size of [1, 2, 3, 100]) {
      const data = (await eventsIn(mixed, [size])).map((event) => event.data);
      expect(data).toEqual([1, 2, 3, undefined]);
    }
  });

  it("may have a comment, a name, data of several lines, none, or none that is JSON", async () => {
    const text = ': hello\n\nevent: x\ndata: {"a":\ndata:1}\n\nid: 7\n\ndata: oops\n\ndata: 3';
    expect((await eventsIn(text, [5])).map(({ data }) => data)).toEqual([undefined, { a: 1 }, undefined, undefined, 3]);
  });

  it("go on behind a line separator, which JSON leaves as it is", async () => {
    const data = { delta: "a\u2028b\u2029c" };
    expect((await eventsIn(`data: ${JSON.stringify(data)}\n\n`, [5])).map((event) => event.data)).toEqual([data]);
  });

  it("give all bytes of a stream that breaks off, and its error", async () => {
    async function* broken() {
      yield Buffer.from("data: 1\n\ndata: {");
      throw new Error("gone");
    }
    const events: StreamEvent[] = [];
    const reading = async () => {
      for await (const event of eventsOf(broken())) events.push(event);
    };
    await expect(reading()).rejects.toThrow("gone");
    expect(bytesOf(events).toString()).toBe("data: 1\n\ndata: {");
    expect(events.map(({ data }) => data)).toEqual([1, undefined]);
  });

  it("are not read where they are too long, and the next one is", async () => {
    const long = `data: "${"x".repeat(100)}"\n\n`;
    const events = await eventsIn(`${long}data: 1\n\n`, [8], 40);
    expect(events.map(({ data }) => data).filter((data) => data !== undefined)).toEqual([1]);
    expect(bytesOf(events).toString()).toBe(`${long}data: 1\n\n`);
  });
});
