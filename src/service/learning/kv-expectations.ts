import { z } from "zod";
import type { EngineCache, TokenizedPrompt } from "../../core/index.js";
import { apartBy } from "../../engines/kv-events/kv-event-batch.js";
import { wholeOf } from "../../engines/upstream/converted-body.js";
import { OptionalRoute } from "../../engines/upstream/optional-route.js";
import type { Upstream } from "../../engines/upstream/upstream.js";
import { OWN_NAME } from "../../engines/upstream/upstream-headers.js";

/** Milliseconds that an engine may take to make tokens of a prompt; its own answer takes longer, mostly. */
const TIMEOUT_MS = 1_000;
/** What decides which tokens a prompt is. */
const TEMPLATE_FIELDS = ["model", "messages", "tools", "chat_template", "chat_template_kwargs"] as const;

const tokenized = z.object({ tokens: z.array(z.int().min(0)) });

/** A prompt in its engine's tokens, and how many of them were cached when it was sent. */
export interface ExactExpectation extends TokenizedPrompt {
  readonly cachedTokens: number;
}

/** What an engine that publishes events has cached of a prompt that is about to be sent: to the block, in its own tokens. */
export class KvExpectations {
  readonly #route: OptionalRoute;

  /** @param now milliseconds since the epoch */
  constructor(
    private readonly cache: EngineCache,
    upstream: Upstream,
    now: () => number,
  ) {
    this.#route = new OptionalRoute(upstream, now);
  }

  /** Null where it is not known. To be called before the prompt is sent, and awaited after. Never rejects. */
  async of(body: Readonly<Record<string, unknown>>): Promise<ExactExpectation | null> {
    const { residents } = this.cache;
    if (residents.length === 0 || !Array.isArray(body["messages"])) return null;
    const until = residents.map(({ newest }) => newest);
    try {
      const fields = Object.fromEntries(TEMPLATE_FIELDS.flatMap((name) => (name in body ? [[name, body[name]]] : [])));
      const call = {
        method: "POST",
        path: "/tokenize",
        query: "",
        headers: [OWN_NAME],
        body: JSON.stringify({ ...fields, add_generation_prompt: true }),
        isBackground: true,
      } as const;
      const answer = await this.#route.send(call, AbortSignal.timeout(TIMEOUT_MS));
      if (answer?.status !== 200) return null;
      const { tokens } = tokenized.parse(JSON.parse((await wholeOf(answer.body, "")).toString("utf8")));
      const salt = body["cache_salt"];
      const chains = residents[0]?.chainsOf(tokens, typeof salt === "string" ? apartBy([salt]) : null) ?? [];
      const cachedTokens = this.cache.residentTokens(chains, until);
      return cachedTokens === null ? null : { tokens: tokens.length, chains, cachedTokens };
    } catch {
      // An engine that cannot be reached, or makes no tokens of this prompt, says so where it is sent.
      return null;
    }
  }
}
