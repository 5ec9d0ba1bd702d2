import { randomInt } from "node:crypto";
import type { Api } from "../../apis/api/api.js";
import type { EngineUsage } from "../../apis/api/usage.js";
import {
  type CacheHandle,
  countedText,
  digestOf,
  instructionsAtHead,
  LruMap,
  messageDigest,
  writeFigures,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { type JsonObject, text } from "../../core/text/json.js";
import { type EngineName, marksElsewhereIn } from "../../engines/adapters/engine-adapter.js";
import type { MemprefixObserver } from "../base/memprefix-observer.js";
import { engineFamilyFor, engineModelFor, type TenantParts } from "../base/memprefix-parts.js";
import type { Tenant } from "../base/tenant.js";
import { writePrompt } from "../compose/compose-answer.js";

/** Mem0 sends the same instructions with every addition; its procedures have others. */
const MOST_HEADS = 64;

/** A call on its way to the engine. */
export interface WriteCall {
  readonly body: JsonObject;
  /** @param usage null: the engine reported none */
  ended(usage: EngineUsage | null): Promise<void>;
  /** The engine did not compute it. */
  dropped(): void;
}

/** Mem0's calls of its own model (`/plain/v1`): not composed, but hinted, counted as writes, and counted in the cache, of which they evict. */
export class WriteCalls {
  readonly #headTokens = new LruMap<string, number>(MOST_HEADS);

  constructor(
    private readonly parts: TenantParts,
    private readonly tenant: Tenant,
    private readonly observer: Required<MemprefixObserver>,
  ) {}

  /** @param engine the family whose hints are sent; null or absent: the configured one */
  start({ api, body, engine }: { api: Api; body: JsonObject; engine?: EngineName | null }): WriteCall {
    const { parts, tenant } = this;
    const model = text(body["model"]) || null;
    const family = engine ?? engineFamilyFor(parts.defaults, model);
    const messages = api.history(body) ?? [];
    const head = instructionsAtHead(messages);
    const id = parts.newRequestId();
    const emitted = parts.engines[family].emit(
      writePrompt(id, { messages, head, marksElsewhere: marksElsewhereIn(body) }, tenant.cacheSecret),
    );
    const isMarked = emitted.messages.some((message, at) => message !== messages[at]);
    const sent = { ...emitted.fields, ...(isMarked ? api.withPrompt(body, emitted.messages) : body) };

    const tokensOf = (from: number, to: number) =>
      messages.slice(from, to).reduce((sum, message) => sum + parts.countTokens(countedText(message)), 0);
    const digest = digestOf(messages.slice(0, head).map(messageDigest).join());
    const headTokens = head === messages.length ? 0 : keptIn(this.#headTokens, digest, () => tokensOf(0, head));
    const total = headTokens + tokensOf(headTokens === 0 ? 0 : head, messages.length);
    const at = parts.now();
    const handle = id as string as CacheHandle;
    const expected = this.#admit(handle, { at, total, head: { digest, tokens: headTokens } });
    return {
      body: sent,
      ended: async (usage) => {
        const { promptTokens = null, cachedTokens = null } = usage ?? {};
        const report = cachedTokens === null ? null : { cachedTokens, promptTokens };
        parts.cache?.report(handle, report, parts.now());
        this.observer.wrote({ promptTokens: promptTokens ?? total, cachedTokens });
        const figures = writeFigures(
          { total, expected, report, model, engine: family },
          engineModelFor(parts.defaults, model),
        );
        await parts.store.prompts.keepWrite(tenant.name, randomInt(2 ** 48 - 1), at, figures);
      },
      dropped: () => parts.cache?.release(handle),
    };
  }

  /** Counts a call in the engine's cache. Gives how much of it should be cached. */
  #admit(
    handle: CacheHandle,
    { at, total, head }: { at: number; total: number; head: { digest: string; tokens: number } },
  ) {
    const { cache } = this.parts;
    if (cache === undefined) return 0;
    const stream = `writes ${this.tenant.name} ${head.digest}`;
    const isKnown = cache.newestOf(stream) !== null;
    const cached = isKnown ? Math.min(head.tokens, cache.lookup(stream).residentTokens) : 0;
    const known = isKnown ? head.tokens : 0;
    cache.admit({ handle, stream, user: stream, at, total, cached, known, head });
    return cached;
  }
}
