import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { peekAtFirstEvent } from "../../../src/engines/upstream/first-event.js";
import { inChunks, chunkSizes as sizes } from "./chunks.js";

const blank = fc.constantFrom("\n", "\r\n");
const whole = async (body: AsyncIterable<Uint8Array>) => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
};

describe("the first event of a stream", () => {
  it("leaves the stream whole, whatever it is and however it comes", async () => {
    const pieces = fc.array(
      fc.constantFrom("data: ", "error: ", "event: error", "{}", '{"a":1', "}", "\n", "\r\n", "\r", ": c", "é", " "),
    );
    await fc.assert(
      fc.asyncProperty(pieces, fc.uint8Array({ maxLength: 9 }), sizes, async (some, noise, cut) => {
        const bytes = Buffer.concat([Buffer.from(some.join("")), noise]);
        expect(await whole((await peekAtFirstEvent(inChunks(bytes, cut))).body)).toEqual(bytes);
      }),
    );
  });

  it("is the same one however the bytes are cut, after comments and events of progress", async () => {
    const before = fc.array(
      fc.constantFrom(
        ": waiting }",
        "event: ping\ndata: {}",
        'data: {"type": "ping"}\n',
        'event: response.created\ndata: {"type":"response.created","response":{"error":null}}\n',
        "retry: 3000",
        "",
      ),
    );
    const value = fc.record({ error: fc.record({ message: fc.string({ unit: "grapheme" }), code: fc.nat() }) });
    const form = fc.constantFrom<(json: string) => string>(
      (json) => `data: ${json}`,
      (json) => `data:${json}`,
      (json) => `error: ${json}`,
      (json) => `event: error\ndata: ${json}`,
      (json) => json,
    );
    const isPretty = fc.boolean();
    await fc.assert(
      fc.asyncProperty(before, value, form, blank, isPretty, sizes, async (first, error, formed, end, pretty, cut) => {
        const known = first.filter((text) => text !== "event: ping\ndata: {}");
        const bare = formed("") === "";
        const json = JSON.stringify(error, null, pretty && bare ? 2 : 0);
        const text = [...(bare ? [] : known), formed(json)].join("\n").replaceAll("\n", end);
        for (const tail of ["", end + end, `${end}${end}data: [DONE]${end}${end}`]) {
          const { event } = await peekAtFirstEvent(inChunks(Buffer.from(text + tail), cut));
          expect(JSON.parse(event ?? "null")).toEqual(error);
        }
      }),
    );
  });

  it("is none where the first data is no JSON, and is not waited for longer than a moment", async () => {
    const chunks = async function* () {
      yield Buffer.from(": queued\n\n");
      await new Promise((later) => setTimeout(later, 2_500));
      yield Buffer.from('data: {"error":{"message":"late"}}\n\n');
    };
    const { event, body } = await peekAtFirstEvent(chunks());
    expect(event).toBeNull();
    expect((await whole(body)).toString()).toBe(': queued\n\ndata: {"error":{"message":"late"}}\n\n');
    for (const text of ["data: [DONE]\n\n", "data: yes\n\n", "data\n\n", ""])
      expect((await peekAtFirstEvent(inChunks(Buffer.from(text), [3]))).event).toBeNull();
  });

  it("that breaks off leaves what came of it, and then the error", async () => {
    const broken = async function* () {
      yield Buffer.from('data: {"err');
      throw new Error("reset");
    };
    const { event, body } = await peekAtFirstEvent(broken());
    expect(event).toBeNull();
    const bytes = body[Symbol.asyncIterator]();
    expect((await bytes.next()).value).toEqual(Buffer.from('data: {"err'));
    await expect(bytes.next()).rejects.toThrow("reset");
  });
});
