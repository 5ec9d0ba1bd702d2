/*
 * Attacked: that what a client of `/v1/messages` sends now is what is sent, by conversations at random: texts, images, documents, thinking, calls
 * and their results, marks; and changes of any part of them between turns: cut, redacted, signed again, taken out, moved, a window in front of
 * others. Held: a prompt is what `/plain` sends of the same body, and in front of it at most whole messages that a window cut,
 * as they were sent last.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { servedApp } from "../http/server/served-app.js";
import { SECTION } from "./section-pattern.js";

type Json = Readonly<Record<string, unknown>>;
interface Said {
  readonly id: number;
  readonly message: Json;
}

const TOKEN = /T\d+E/g;
const tokensIn = (value: unknown) => new Set(JSON.stringify(value).match(TOKEN) ?? []);
const withoutMarks = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value), (name, inner) => (name === "cache_control" ? undefined : inner)) as T;

/** What a client says, and how it changes that. Every text, address and datum of it has a token of its own. */
class Client {
  #tokens = 0;
  #said = 0;

  constructor(readonly pick: <T>(from: readonly T[]) => T) {}

  isOneOf(count: number): boolean {
    return this.pick(Array.from({ length: count }, (_, at) => at)) === 0;
  }

  #token = () => `T${++this.#tokens}E`;

  readonly #parts: readonly (() => Json)[] = [
    () => ({ type: "text", text: `${this.pick(["", " ", "\n"])}Say ${this.#token()} and ${this.#token()}.\r\n` }),
    () => ({ type: "image", source: { type: "url", url: `https://cdn.test/a.png?sig=${this.#token()}` } }),
    () => ({ type: "image", source: { type: "base64", media_type: "image/png", data: `AA${this.#token()}==` } }),
    () => ({ type: "document", title: this.#token(), source: { type: "url", url: `https://d.test/${this.#token()}` } }),
    () => ({ type: "document", source: { type: "text", media_type: "text/plain", data: `Doc ${this.#token()}` } }),
    () => ({ type: "search_result", source: this.#token(), title: "t", content: [{ type: "text", text: "Found." }] }),
  ];

  #some(): readonly Json[] {
    return [0, 1].slice(this.pick([0, 1])).map(() => {
      const part = this.pick(this.#parts)();
      return this.isOneOf(8) ? { ...part, cache_control: { type: "ephemeral" } } : part;
    });
  }

  #thought(): readonly Json[] {
    const said = { type: "thinking", thinking: `Hm ${this.#token()}`, signature: `s${this.#token()}` };
    return this.pick([[], [said], [{ type: "redacted_thinking", data: this.#token() }, said]]);
  }

  #new = (role: string, content: unknown): Said => ({ id: this.#said++, message: { role, content } });

  question(): Said {
    return this.#new("user", this.isOneOf(3) ? `Ask ${this.#token()} and ${this.#token()}?` : this.#some());
  }

  answer(): Said {
    const text = `Answer ${this.#token()} is.`;
    return this.#new("assistant", this.isOneOf(2) ? text : [...this.#thought(), { type: "text", text }]);
  }

  /** Calls, and a message with their results. */
  calls(): readonly Said[] {
    const ids = ["a", "b"].slice(this.pick([0, 1])).map((id) => `${id}${this.#said}`);
    const uses = ids.map((id) => ({ type: "tool_use", id, name: "weather", input: { city: this.#token() } }));
    const image = () => this.#parts[this.pick([1, 2])]?.() ?? {};
    const results = ids.map((id) => ({
      ...{ type: "tool_result", tool_use_id: id },
      content: this.isOneOf(2) ? `Result ${this.#token()}` : [{ type: "text", text: this.#token() }, image()],
    }));
    return [this.#new("assistant", [...this.#thought(), ...uses]), this.#new("user", results)];
  }

  /** The message with one of its tokens in another form. */
  changed({ id, message }: Said): Said {
    const json = JSON.stringify(message);
    const token = this.pick([...tokensIn(message), "T0E"]);
    const now = this.pick([this.#token(), "[redacted]", ""]);
    const cut = JSON.parse(json.replace(token, now)) as Json;
    const { content } = cut;
    if (!Array.isArray(content) || content.length === 1 || this.isOneOf(2) || isOfTools(cut))
      return { id, message: cut };
    return { id, message: { ...cut, content: content.slice(1) } };
  }
}

function isOfTools({ content }: Json): boolean {
  return Array.isArray(content) && content.some(({ type }: { type: string }) => type.startsWith("tool_"));
}

const isQuestion = ({ message }: Said) => message["role"] === "user" && !isOfTools(message);

/** The messages with one exchange less, or two in another order; the same where there are not so many. */
function moved(said: readonly Said[], { pick }: Client): readonly Said[] {
  const starts = said.flatMap((one, at) => (isQuestion(one) && at > 0 ? [at] : []));
  const [first, second, third] = starts.slice(pick([0, 1]));
  if (first === undefined || second === undefined) return said;
  const [head, one, two] = [said.slice(0, first), said.slice(first, second), said.slice(second, third)];
  return pick([true, false]) || third === undefined
    ? [...head, ...said.slice(second)]
    : [...head, ...two, ...one, ...said.slice(third)];
}

/** A prompt's messages without what memprefix put in, contents as lists. */
function bare(messages: readonly Json[]): readonly unknown[] {
  const isOurs = (part: Json) =>
    part["text"] === "" || (Array.isArray(part["content"]) && part["content"].length === 0);
  const partsOf = (content: unknown): readonly Json[] => {
    const parts: Json[] = [];
    for (const part of typeof content === "string" ? [{ type: "text", text: content }] : ((content ?? []) as Json[])) {
      const last = parts.at(-1);
      const isOpen = /<memories>\n(?!.*<\/memories>)/s.test(String(last?.["text"] ?? ""));
      if (isOpen) parts.splice(-1, 1, { ...part, text: `${last?.["text"]}${part["text"]}` });
      else parts.push(part);
    }
    return parts.flatMap((part) => {
      const { text, content: inner } = part;
      if (part["type"] === "tool_result") return [{ ...part, content: partsOf(inner) }];
      if (typeof text !== "string" || !SECTION.test(text)) return [part];
      const left = { ...part, text: text.replace(SECTION, "") };
      return isOurs(left) ? [] : [left];
    });
  };
  return messages
    .map((message) => ({ ...message, content: partsOf(message["content"]) }))
    .filter((message, at) => message.content.length > 0 || JSON.stringify(messages[at]?.["content"]) === "[]")
    .map(withoutMarks);
}

describe("a client of /v1/messages that changes what it said", () => {
  const source = answeringSource([]);
  const engine = anthropicServer();
  const environment = { MEMPREFIX_ENGINE_FAMILY: "anthropic" };
  const app = servedApp({ source: () => source, upstream: engine, environment });
  let conversations = 0;

  const sent = async (path: string, body: object): Promise<readonly Json[]> => {
    const { status, text } = await app.send("POST", path, { model: "m", max_tokens: 50, ...body });
    expect(status, text).toBe(200);
    return engine.calls.at(-1)?.body.messages ?? [];
  };

  it("has what it sends now, and in front of a window what that cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const client = new Client((from) => from[g(fc.nat, { max: from.length - 1 })] as never);
        const { pick } = client;
        const history = pick(["auto", "extended", "extended", "exact"]);
        const retention = pick(["keep", "volatile", "ephemeral", "auto"]);
        const base = `/users/ada/conversations/c${conversations++}/v1/messages`;
        const isWindowed = !client.isOneOf(3);
        /** As it was sent last; what was taken out otherwise than at the front is none of it. */
        const lastSent = new Map<number, Json>();
        let said: readonly Said[] = [];
        for (let turn = 0; turn < 8; turn++) {
          said = [...said, ...(turn === 0 ? [] : [client.answer()]), client.question()];
          if (client.isOneOf(3)) said = [...said, ...client.calls()];
          const at = pick([...said.keys()].slice(0, -1).concat(0));
          if (turn > 0 && client.isOneOf(2)) said = said.map((one, n) => (n === at ? client.changed(one) : one));
          if (turn > 1 && client.isOneOf(6)) said = moved(said, client);
          // The API takes four marks in all.
          if (JSON.stringify(said).split("cache_control").length > 3) said = withoutMarks(said);
          const starts = said.flatMap((one, n) => (isQuestion(one) ? [n] : []));
          const shown = isWindowed && turn > 2 ? said.slice(starts.at(-pick([1, 2, 3])) ?? 0) : said;
          // What was taken out in front of all that is shown cannot be told from what the window cut.
          for (const id of lastSent.keys())
            if (!said.some((one) => one.id === id) && shown.some((one) => one.id < id)) lastSent.delete(id);
          source.found = [0, 1, 2].slice(pick([0, 1, 2])).map((n) => `Ada has fact ${(n * turn) % 7} to tell.`);
          const body = { messages: shown.map(({ message }) => message) };
          const plain = bare(await sent("/plain/v1/messages", body));
          const own = bare(await sent(base, { ...body, memprefix: { history, retention } }));
          expect(own.slice(-plain.length)).toEqual(plain);
          const isCut = ({ id }: { id: number }) => history !== "exact" && !shown.some((one) => one.id === id);
          const cut = [...lastSent].filter(([id]) => isCut({ id })).map(([, message]) => message);
          const old = [...tokensIn(own)].filter((token) => !tokensIn(plain).has(token));
          expect(old.filter((token) => !tokensIn(cut).has(token))).toEqual([]);
          if (old.length === 0) expect(own).toHaveLength(plain.length);
          for (const { id, message } of shown) lastSent.set(id, message);
        }
      }),
      { numRuns: 25, endOnFailure: true },
    );
    expect(app.faults).toEqual([]);
  });
});
