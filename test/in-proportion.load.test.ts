import { describe, expect, it } from "vitest";
import { withoutProviderMemories } from "../src/core/blocks/provider-memories.js";
import { withoutFilePaths } from "../src/core/text/file-paths.js";
import { sentencesOf } from "../src/core/text/memory-text.js";
import { eventsOf } from "../src/engines/upstream/answer-body.js";
import { isUnsafe, parseSafeJson } from "../src/http/guards/safe-json.js";
import { ownMessage, retrieved } from "./core/blocks/provider-texts.js";

/** How many times the length the longer text is; quadratic work on it is as many times more than in proportion. */
const TIMES = 8;
/** How much more than in proportion is noise. */
const NOISE = 4;
/** Other work on the machine slows some attempts: the quickest of them tell. */
const FEWEST_ATTEMPTS = 3;
const MOST_ATTEMPTS = 20;

/** Work on a text of about `length`; what comes before it is not timed. */
type Work = (length: number) => () => unknown;

/** Whether work on a text of eight times the length takes no more than in proportion: the quickest of some attempts at both. */
async function isInProportion(prepare: Work, length: number): Promise<boolean> {
  const timeOf = async (of: number) => {
    const work = prepare(of);
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  let [short, long] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    short = Math.min(short, await timeOf(length));
    long = Math.min(long, await timeOf(TIMES * length));
    if (attempt >= FEWEST_ATTEMPTS && long <= NOISE * TIMES * short) return true;
  }
  return false;
}

/** Work on a piece that repeats. */
const on =
  (piece: string, work: (text: string) => unknown): Work =>
  (length) => {
    const text = piece.repeat(Math.ceil(length / piece.length));
    return () => work(text);
  };

/** Memories that are not safe to parse, each of which is left out. */
const unsafeMemories: Work = (length) => {
  const item = '{"id":"1","memory":"x","metadata":{"__proto__":[]}}';
  const json = `{"memories":[${Array.from({ length: Math.ceil(length / item.length) }, () => item).join()}]}`;
  return () => parseSafeJson(json, ["memories"]);
};

/** One event, in pieces of 16 bytes. Eight times as long was 64 times as much work. */
const longEvent: Work = (length) => {
  const bytes = Buffer.from(`data: "${"x".repeat(length)}"\n\n`);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 16) yield bytes.subarray(at, at + 16);
  }
  return async () => {
    for await (const _ of eventsOf(pieces(), 16 * 1024 * 1024));
  };
};

const provided = (write: (texts: string[]) => string) => (text: string) =>
  withoutProviderMemories([
    { role: "system", content: write([text]) },
    { role: "user", content: "Tea?" },
  ]);

const WORK: readonly (readonly [what: string, work: Work, length: number])[] = [
  ...["a. ", "a.a.", "( ", '" ', ".", "。", "- "].map(
    (piece) => [`sentences of "${piece}"`, on(piece, sentencesOf), 40_000] as const,
  ),
  ...["/", "/a ", "'/a", "../", "C:\\", "/a b/", "file:/"].map(
    (piece) => [`file paths in "${piece}"`, on(piece, withoutFilePaths), 20_000] as const,
  ),
  ...['"__proto__"', '"__proto__" ', '"', '"_', `"__proto__"${" ".repeat(1_000)}`, "\\u005f"].map(
    (piece) => [`a reserved name in ${piece.slice(0, 20)}`, on(piece, isUnsafe), 500_000] as const,
  ),
  ["a provider's memories among introductions", on("\n\n\n\nMemory: ", provided(ownMessage)), 200_000],
  ["a provider's memories among line breaks", on("\n", provided(ownMessage)), 200_000],
  ["a provider's memories in one memory", on("Memory: ", provided(retrieved)), 200_000],
  ["memories that are not safe to parse", unsafeMemories, 100_000],
  ["a long event in small pieces", longEvent, 250_000],
];

describe("the time for", () => {
  it.each(WORK)("%s is in proportion to the text", async (_what, work, length) => {
    expect(await isInProportion(work, length)).toBe(true);
  });
});
