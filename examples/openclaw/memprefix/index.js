/*
 * memprefix as a context engine of OpenClaw: each question gets the memories that memprefix composes for it, and earlier questions keep theirs.
 * Enters: the history as OpenClaw stores it, without memories, and the question. Leaves: the same, with a message of memories in front of
 * each question that has any.
 */

import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";

/** 3 seconds, counted in ticks: time in which OpenClaw itself was too busy to read an answer counts as one. */
const TICK_MS = 100;
const MOST_TICKS = 30;
const REASON_CHARACTERS = 300;
/** Sessions of one person, beside the main one: of a terminal, and of OpenClaw's own page. */
const OWN_SESSIONS = ["explicit", "dashboard"];
const NOBODY = "nobody is named: set userId in the plugin's config to the user whose memories are wanted";

export default {
  id: "memprefix",
  name: "memprefix",
  register(api) {
    const { url = "http://127.0.0.1:4600", apiKey, userId } = api.pluginConfig ?? {};
    const memprefix = new MemprefixComposer({
      url: url.replace(/\/+$/, ""),
      apiKey,
      warn: (text) => api.logger.warn(text),
    });
    api.registerContextEngine("memprefix", () => ({
      info: {
        id: "memprefix",
        name: "memprefix",
        ownsCompaction: false,
        transcriptSemantics: {
          currentTurnFence: "before-current-turn-entry-v1",
          turnAdvancementIdempotency: "atomic-idempotent-v1",
        },
      },
      async assemble({ sessionId, sessionKey, messages, prompt, availableTools, citationsMode }) {
        const user = userOf(sessionKey, userId || undefined);
        if (user === undefined) memprefix.tell(NOBODY);
        const conversation = `${sessionKey}:${sessionId}`;
        const sections = user && prompt ? await memprefix.sections(user, conversation, messages, prompt) : null;
        const assembled = sections === null ? messages : withSections(messages, sections);
        return {
          messages: assembled,
          estimatedTokens: Math.ceil(JSON.stringify(assembled).length / 4),
          systemPromptAddition: buildMemorySystemPromptAddition({
            availableTools: availableTools ?? new Set(),
            citationsMode,
            agentSessionKey: sessionKey,
          }),
        };
      },
      compact: delegateCompactionToRuntime,
      // The transcript is OpenClaw's, and memprefix knows a turn since it composed it: nothing is stored here.
      ingest: async () => ({ ingested: true }),
      commitTurn: async () => ({ status: "committed" }),
    }));
  },
};

/** Asks memprefix for a session's memories. What fails is said once for as long as it lasts. */
class MemprefixComposer {
  #failure = null;

  constructor({ url, apiKey, warn }) {
    this.url = url;
    this.headers = { "content-type": "application/json", ...(apiKey ? { "x-api-key": apiKey } : {}) };
    this.warn = warn;
  }

  /** The memories in front of each message and, last, of the question; null where there are none, for what fails. */
  async sections(user, conversation, messages, prompt) {
    try {
      const said = messages.map((message) => textOf(message));
      const spoken = said.flatMap((text, at) => (text === "" ? [] : [at]));
      const history = spoken.map((at) => ({ role: messages[at].role, content: said[at] }));
      const asked = [...history, { role: "user", content: prompt }];
      const composed = await this.#compose(user, conversation, asked);
      const given = composed.map(({ content }, at) => sectionIn(content, asked[at].content));
      const sections = messages.map(() => "");
      for (const [place, at] of spoken.entries()) sections[at] = given[place];
      this.#failure = null;
      return [...sections, given.at(-1)];
    } catch (error) {
      this.tell(
        `${error instanceof Refusal ? error.message : this.#reasonOf(error)}; OpenClaw answers without memories until then`,
      );
      return null;
    }
  }

  tell(failure) {
    if (failure !== this.#failure) this.warn(`memprefix: ${failure}`);
    this.#failure = failure;
  }

  async #compose(user_id, conversation_id, messages) {
    // OpenClaw decides which messages a prompt has, and sends all memories of those again.
    const terms = { format: "chat", history: "exact", retention: "keep" };
    const { ok, status, text } = await this.#post({ user_id, conversation_id, messages, ...terms });
    if (!ok) throw new Refusal(this.#refusalOf(status, text));
    const composed = parsed(text)?.messages;
    if (composed?.length !== messages.length)
      throw new Refusal(`${this.url} answered, but not as memprefix does: start a current memprefix there, or set url`);
    return composed;
  }

  async #post(body) {
    const patience = new AbortController();
    let ticks = 0;
    const clock = setInterval(() => {
      ticks += 1;
      if (ticks === MOST_TICKS) patience.abort(new Error("timed out"));
    }, TICK_MS);
    const { headers } = this;
    const request = { method: "POST", headers, body: JSON.stringify(body), redirect: "error", signal: patience.signal };
    try {
      const response = await fetch(`${this.url}/compose`, request);
      return { ok: response.ok, status: response.status, text: await response.text() };
    } finally {
      clearInterval(clock);
    }
  }

  #refusalOf(status, text) {
    if (status === 401 || status === 403)
      return `${this.url} rejected the API key (${status}): set apiKey in the plugin's config to one of its keys`;
    if (status === 404 || status === 405)
      return `${this.url} has no POST /compose (${status}): start a current memprefix there, or set url`;
    const { errors, detail, title } = parsed(text) ?? {};
    const fields = errors?.map(({ field, message }) => `${field}: ${message}`).join("; ");
    return `${this.url} refused to compose (${status}): ${(fields || detail || title || "it did not say why").slice(0, REASON_CHARACTERS)}`;
  }

  #reasonOf(error) {
    return `${this.url} did not answer (${error.cause?.code ?? error.message}): start memprefix there, or set url`;
  }
}

class Refusal extends Error {}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whose memories a session gets: nobody's where several people read the answers. */
function userOf(sessionKey = "", owner) {
  const [kind, , ...segments] = sessionKey.split(":thread:")[0].split(":");
  if (kind !== "agent") return null;
  const direct = segments.indexOf("direct");
  if (direct >= 0) return segments.toSpliced(direct, 1).join(":");
  return segments.length === 1 || OWN_SESSIONS.includes(segments[0]) ? owner : null;
}

/** What a user or the assistant said; empty for all else. */
function textOf({ role, content }) {
  if (role !== "user" && role !== "assistant") return "";
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The memories that stand in front of a message's own text. */
function sectionIn(content, text) {
  return content.endsWith(text) ? content.slice(0, content.length - text.length).trimEnd() : "";
}

/** Without a timestamp, by which OpenClaw would write one into the message, and another one in the next prompt. */
function withSections(messages, sections) {
  const memory = (at) => (sections[at] ? [{ role: "user", content: sections[at] }] : []);
  return [...messages.flatMap((message, at) => [...memory(at), message]), ...memory(messages.length)];
}
