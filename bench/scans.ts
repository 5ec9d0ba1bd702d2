/**
 * `npm run bench:scans`: what a client's text of 4 MiB costs each part of memstem that reads all of it, at the worst text that we could
 * think of, in milliseconds of processor time, most of which the event loop is blocked for. Texts grow until they are so long or take a second: then the table says how long they were.
 * `BYTES` sets another length, `ONLY` a part by its name.
 */
import { countO200k } from "../src/cli/o200k.js";
import {
  type ChatMessage,
  Conversation,
  canonicalText,
  cutText,
  escapeText,
  messageDigest,
  QuoteSearch,
  recallHistory,
  stripSection,
  unstorableWithin,
} from "../src/core/index.js";
import { StopText } from "../src/engines/embedded/answer-text.js";
import { eventsOf } from "../src/engines/upstream/event-stream.js";
import { readChat } from "../src/http/contracts/chat-contract.js";
import { composeBodyWithNulls, readCompose } from "../src/http/contracts/contracts.js";
import { rejectDeepNesting, utf8Text } from "../src/http/guards/safe-input.js";
import { readMem0Answer } from "../src/memory/mem0-answer.js";
import { exchangeMemory } from "../src/service/chat/exchange.js";

const BYTES = Number(process.env["BYTES"] ?? 4 * 1024 * 1024);
const SLOW_MS = 1_000;

/** A part, and texts for it by what they are made of. */
interface Scan {
  readonly name: string;
  readonly pieces: Readonly<Record<string, string>>;
  /** Makes what is read out of a text, whose time is not counted, and gives what reads it. */
  readonly reading: (text: string) => () => unknown;
}

const user = (content: unknown): ChatMessage => ({ role: "user", content: content as string });
const each = <T>(text: string, length: number, make: (piece: string, at: number) => T): T[] => {
  const all: T[] = [];
  for (let at = 0; at < text.length; at += length) all.push(make(text.slice(at, at + length), all.length));
  return all;
};
const OPEN = "<memories>\n";
const markers = {
  labels: "[1]",
  "angle brackets": "<",
  "both brackets": "<[",
  "open names": "[A",
  "long names": `<${"a_".repeat(40)}`,
  "hidden brackets": "<\u200b",
  "wide letters": "<ｍ",
  switches: "/think",
};
const words = {
  "one letter": "a",
  "one word of many letters": "abcdefghij".repeat(25),
  spaces: " ",
  "line breaks": "\n",
  digits: "1",
  marks: "!?",
  emoji: "👩‍👩‍👧‍👦",
  "no script": "\u0301",
  Chinese: "茶很好喝吗",
  "mixed case": "aB",
  apostrophes: "'s",
  "letters and spaces": "a ",
};

/** A megabyte of characters out of so many behind the first, without an order. */
function neverTheSame(first: number, count: number): string {
  let last = 1;
  return Array.from({ length: 1024 * 1024 }, () => {
    last = (last * 48_271) % 0x7fff_ffff;
    return String.fromCharCode(first + (last % count));
  }).join("");
}

const texts = (text: string, length = 100_000) => each(text, length, (piece) => piece);
const hundredDeep = (leaf: string) => Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], leaf);
const configured = ["USER:", "ASSISTANT:", "### Instruction:", "|ENDOFTEXT|", "aaaaaaaaab"];

const scans: readonly Scan[] = [
  {
    name: "sections in a question that is written back",
    pieces: {
      openings: OPEN,
      "openings in blocks": `[1] ${OPEN}`,
      "openings in annotations": `x ${OPEN}`,
      tags: "<memories>",
      "blocks without an end": "[1] a\n",
    },
    reading: (text) => () => exchangeMemory([user(`${OPEN}${text}`)], "yes"),
  },
  {
    name: "a section at a message's front",
    pieces: {
      blocks: "[1] a\n",
      labels: "1 ",
      "replaced labels": "1 (replaces [1][1][1]",
      "further lines": "  a\n",
      annotations: "x\n",
    },
    reading: (text) => () => stripSection(user(`${OPEN}1 ${text}\n</memories>`), () => false),
  },
  {
    name: "escaping by shape",
    pieces: markers,
    reading: (text) => inPieces(texts(text), (piece) => escapeText(piece)),
  },
  {
    name: "escaping five configured markers",
    pieces: { ...markers, letters: "a", hashes: "#", capitals: "U" },
    reading: (text) => inPieces(texts(text), (piece) => escapeText(piece, { markers: configured })),
  },
  {
    name: "canonical text",
    pieces: { ...words, returns: "\r", separators: "\u2028" },
    reading: (text) => () => canonicalText(text),
  },
  { name: "cutting a memory", pieces: words, reading: (text) => () => cutText(text, text.length - 10) },
  ...[100_000, 10_000].map((length) => ({
    name: `counting tokens of texts of ${length.toLocaleString("en")} characters`,
    pieces: { ...words, ...markers, "Chinese that does not repeat": neverTheSame(0x4e00, 0x5000) },
    reading: (text: string) => inPieces(texts(text, length), countO200k),
  })),
  {
    name: "looking for a memory of 100,000 characters that is almost quoted",
    pieces: { letters: "a" },
    reading: (text) => {
      const search = new QuoteSearch([`${"a".repeat(50_000)}b${"a".repeat(49_999)}`]);
      return () => search.isIn(`b${text}`);
    },
  },
  {
    name: "a message's digest",
    pieces: { parts: "a", levels: "[" },
    reading: (text) => {
      const parts = text.startsWith("[")
        ? hundredDeep(text)
        : each(text, 25, (_, at) => ({ type: "text", text: `${at}` }));
      return () => messageDigest({ role: "user", content: null, parts });
    },
  },
  {
    name: "the history of 10,000 messages",
    pieces: { short: "x", sections: `${OPEN}[1] a\n</memories>` },
    reading: (text) => {
      const messages = each(text, Math.ceil(text.length / 10_000), (piece) => user(piece));
      return () => recallHistory(new Conversation([]), messages, () => false, null);
    },
  },
  {
    name: "half characters in JSON",
    pieces: { texts: "a", fields: "b" },
    reading: (text) => {
      const value = text.startsWith("a") ? [text] : Object.fromEntries(each(text, 12, (_, at) => [`k${at}`, at]));
      return () => unstorableWithin(value);
    },
  },
  {
    name: "checking a compose",
    pieces: { messages: "m", "messages that are none": "n", "parts that are none": "p", "unknown fields": "f" },
    reading: (text) => {
      const body = { user_id: "a", memories: [], messages: [user("x")] as unknown[] };
      const lists: Readonly<Record<string, () => object>> = {
        m: () => ({ ...body, messages: each(text, Math.ceil(text.length / 10_000), (piece) => user(piece)) }),
        n: () => ({ ...body, messages: each(text, 3, () => ({})) }),
        p: () => ({ ...body, messages: [user(each(text, 3, () => ({})))] }),
        f: () => ({ ...body, ...Object.fromEntries(each(text, 12, (_, at) => [`k${at}`, at])) }),
      };
      const given = lists[text.charAt(0)]?.();
      return () => {
        try {
          readCompose(composeBodyWithNulls.parse(given));
        } catch {
          // Most are refused.
        }
      };
    },
  },
  {
    name: "checking a chat",
    pieces: { "parts that are none": "n", "parts that are text": "t" },
    reading: (text) => {
      const part = text.startsWith("n") ? () => ({}) : () => ({ type: "text", text: "x" });
      const body = { user: "u", messages: [user(each(text, text.startsWith("n") ? 3 : 27, part))] };
      return () => readChat(body, new Headers());
    },
  },
  {
    name: "checking memories",
    pieces: { letters: "x", spaces: " " },
    reading: (text) => {
      const items = each(text, 4_195, (piece, at) => ({ id: `${at}`, memory: piece }));
      return () => readMem0Answer(items);
    },
  },
  {
    name: "how deep a body is nested",
    pieces: { letters: "a", quotes: '"', backslashes: '\\\\"', brackets: "[]" },
    reading: (text) => () => rejectDeepNesting(`{"a":"${text.startsWith("[") ? '",' : ""}${text}`),
  },
  {
    name: "bytes to text",
    pieces: { letters: "a", Chinese: "茶" },
    reading: (text) => {
      const bytes = Buffer.from(text).subarray(0, 3 * Math.floor(text.length / 3));
      return () => utf8Text(bytes);
    },
  },
  {
    name: "stop texts in an answer",
    pieces: { letters: "a" },
    reading: (text) => () => {
      const stop = new StopText([`${"a".repeat(100)}b`, "c"]);
      for (let at = 0; at < text.length; at += 4) stop.push(text.slice(at, at + 4));
    },
  },
];

function inPieces(pieces: readonly string[], read: (piece: string) => unknown) {
  return () => {
    for (const piece of pieces) read(piece);
  };
}

/** Milliseconds of processor time: a busy machine changes nothing about it. */
function usedSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

const made = (piece: string, length: number) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length);

console.log(
  "| part | worst text | ms at 4 MiB |".replace("4 MiB", BYTES === 4 * 1024 * 1024 ? "4 MiB" : `${BYTES} characters`),
);
console.log("| --- | --- | --: |");
for (const { name, pieces, reading } of scans) {
  if (process.env["ONLY"] !== undefined && !name.includes(process.env["ONLY"])) continue;
  let worst = { kind: "", length: 0, ms: -1, score: -1 };
  for (const [kind, piece] of Object.entries(pieces)) {
    for (let length = 32 * 1024; ; length = Math.min(BYTES, length * 4)) {
      const read = reading(made(piece, length));
      const start = process.cpuUsage();
      read();
      const ms = usedSince(start);
      if (length < BYTES && ms < SLOW_MS) continue;
      // What did not get as far is worse than what did.
      const score = ms * (BYTES / length) ** 2;
      if (score > worst.score) worst = { kind, length, ms, score };
      break;
    }
  }
  const at = worst.length < BYTES ? ` at ${Math.round(worst.length / 1024)} KiB` : "";
  console.log(`| ${name} | ${worst.kind} | ${worst.ms.toFixed(0)}${at} |`);
}

async function* chunksOf(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
for (const size of [16, 1_024]) {
  let length = 32 * 1024;
  let ms = 0;
  for (; ; length = Math.min(BYTES, length * 4)) {
    const start = process.cpuUsage();
    for await (const _ of eventsOf(chunksOf(Buffer.from(made("data: x", length)), size)));
    ms = usedSince(start);
    if (length === BYTES || ms > SLOW_MS) break;
  }
  console.log(
    `| an engine's stream, a line without an end in pieces of ${size} | letters | ${ms.toFixed(0)}${length < BYTES ? ` at ${length / 1024} KiB` : ""} |`,
  );
}
