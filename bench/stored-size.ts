/**
 * `npm run bench:stored-size`: megabytes of a SQLite file after 200 prompts with five memories, and milliseconds of CPU for each of them, of
 * clients that differ in what they send again: nothing, a conversation's whole history, its last 40 messages, or one history with every
 * single prompt. Messages of 500 and 2,000 characters (or `TEXT=500,2000`).
 *
 * Floor: what was said, once; and of each prompt its answer and injection, and 46 bytes for each message that it has from before.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatMessage } from "../src/core/index.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { openDatabase } from "../src/store/database/open-database.js";
import { JournalStore } from "../src/store/journal/journal-store.js";
import { journalIn } from "../src/store/sqlite/open-journal.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { seeded } from "./seeded.js";

const PROMPTS = 200;
const WINDOW = 40;
const TEXTS = (process.env["TEXT"] ?? "500,2000").split(",").map(Number);

/** What one prompt sends. */
interface Sent {
  readonly conversationId: string | null;
  readonly messages: readonly ChatMessage[];
}

const memory = (at: number) => ({ id: `memory-${at}`, memory: `What is remembered as number ${at}, in some words.` });

/** Says what nobody said before. */
class Client {
  readonly #random = seeded(7);
  #said = 0;

  constructor(private readonly length: number) {}

  say(role: string): ChatMessage {
    const words: string[] = [`${++this.#said}.`];
    for (let length = 4; length < this.length; length += (words.at(-1)?.length ?? 0) + 1)
      words.push(Math.floor(this.#random() * 1e6).toString(36));
    return { role, content: words.join(" ") };
  }

  exchanges(count: number): ChatMessage[] {
    return Array.from({ length: 2 * count }, (_, at) => this.say(at % 2 === 0 ? "user" : "assistant"));
  }
}

interface Sending {
  readonly history: "exact" | "auto";
  readonly send: (client: Client) => Iterable<Sent>;
}

const CLIENTS: Readonly<Record<string, Sending>> = {
  "single prompts": { history: "auto", send: (client) => behind(client, []) },
  "whole history": { history: "auto", send: (client) => windows(client, "c", 0) },
  "window, extended": { history: "auto", send: (client) => windows(client, "c", WINDOW) },
  "window, exact": { history: "exact", send: (client) => windows(client, "c", WINDOW) },
  "window without a conversation": { history: "auto", send: (client) => windows(client, null, WINDOW) },
  "one history of 100 messages": { history: "auto", send: (client) => behind(client, client.exchanges(50)) },
  "one history of 200 KB": { history: "auto", send: (client) => behind(client, new Client(5_000).exchanges(20)) },
};

/** @param length 0: all */
function* windows(client: Client, conversationId: string | null, length: number): Generator<Sent> {
  const said: ChatMessage[] = [];
  for (let at = 0; at < PROMPTS; at++) {
    said.push(client.say("user"));
    yield { conversationId, messages: said.slice(-length) };
    said.push(client.say("assistant"));
  }
}

function* behind(client: Client, history: readonly ChatMessage[]): Generator<Sent> {
  for (let at = 0; at < PROMPTS; at++) yield { conversationId: null, messages: [...history, client.say("user")] };
}

async function measure(sent: Iterable<Sent>, history: Sending["history"]) {
  const directory = mkdtempSync(join(tmpdir(), "memstem-size-"));
  const file = join(directory, "stored.db");
  const store = new JournalStore(journalIn(openDatabase(file)));
  const service = openService({ store });
  const began = process.cpuUsage();
  let prompts = 0;
  for (const { conversationId, messages } of sent) {
    const memories = Array.from({ length: 5 }, (_, at) => memory((prompts * 3 + at * 7) % 60));
    const conversation = conversationId === null ? {} : { conversationId, history };
    await service.compose(readComposeOptions({ userId: "ana", messages: [...messages], memories, ...conversation }));
    prompts++;
  }
  const { user, system } = process.cpuUsage(began);
  await service.close();
  const bytes = statSync(file).size;
  rmSync(directory, { recursive: true, force: true });
  return { bytes, ms: (user + system) / 1_000 / prompts };
}

for (const length of TEXTS)
  for (const [client, { history, send }] of Object.entries(CLIENTS)) {
    const { bytes, ms } = await measure(send(new Client(length)), history);
    console.log(`${length} characters, ${client}: ${(bytes / 1e6).toFixed(2)} MB, ${ms.toFixed(1)} ms`);
  }
