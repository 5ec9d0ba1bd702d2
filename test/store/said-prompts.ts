import {
  type AgentId,
  type ConversationId,
  type MissCause,
  type PromptFigures,
  type PromptUsage,
  type RequestId,
  type Scope,
  type TurnId,
  type UserId,
  uncachedTokens,
} from "../../src/core/index.js";
import type { Statement } from "../../src/store/database.js";
import type { PromptKey } from "../../src/store/prompt-figures.js";
import { promptInsert } from "../../src/store/prompts.js";
import type { ComposeRecord } from "../../src/store/store.js";

/** What a test says of a prompt; the rest stands for itself. */
export interface SaidPrompt {
  readonly tenant?: string;
  readonly user?: string;
  readonly agent?: string | null;
  readonly conversation?: string | null;
  readonly request: string;
  readonly at: number;
  readonly model?: string;
  readonly engine?: string;
  readonly prompt?: number;
  readonly expected?: number;
  /** Tokens that it missed. */
  readonly missed?: number;
  readonly cause?: MissCause;
  readonly apart?: PromptFigures["apart"];
  /** What its engine reported: cached tokens, and the milliseconds to the first token. */
  readonly cached?: number;
  readonly ms?: number;
}

/** A stored prompt's row: by these it is updated. */
export interface SaidRow {
  readonly scopeId: number;
  readonly turnId: TurnId;
}

/** Where a test's scopes and turns get their numbers. */
export class SaidPrompts {
  readonly #scopes = new Map<string, number>();
  #turns = 0;

  composed(said: SaidPrompt): SaidRow & { readonly statements: readonly Statement[] } {
    const { conversation = null, request, at, engine = "openai" } = said;
    const { tenant, userId, agentId } = keyOf(said);
    const scope: Scope = { tenant, userId, agentId };
    const name = JSON.stringify(scope);
    const known = this.#scopes.get(name);
    const scopeId = known ?? this.#scopes.size + 1;
    this.#scopes.set(name, scopeId);
    // Databases number scopes from 1.
    const scopeText = "insert into scopes (tenant, user_id, agent_id, created_at) values ($1, $2, $3, 0)";
    const begin = known === undefined ? [{ text: scopeText, values: [tenant, userId, agentId ?? ""] }] : [];
    const turnId = ++this.#turns as TurnId;
    const prompt = {
      ...figuresOf(said),
      engine,
      layout: conversation === null ? "single" : "conversation",
      policy: "prefix-exact",
      retention: "keep",
      epoch: conversation === null ? null : { began: null, prompts: 3 },
      byHand: conversation === null ? null : { inMessage: 2_400, inSystem: 2_500 },
    } as const;
    const turn = { id: turnId, conversationId: conversation as ConversationId | null };
    const record = { prompt, composition: { turn }, request: { id: request }, at } as unknown as ComposeRecord;
    const text = `insert into requests (scope_id, id, turn_id, at, digest, leaf, answer)
      values ($1, $2, $3, $4, '', 0, '')`;
    const statements = [
      ...begin,
      { text, values: [scopeId, request, turnId, at] },
      ...promptInsert(scopeId, record, record.prompt, scope),
    ];
    return { scopeId, turnId, statements };
  }
}

export function keyOf({ tenant = "default", user = "ana", agent = null, request }: Omit<SaidPrompt, "at">): PromptKey {
  return { tenant, userId: user as UserId, agentId: agent as AgentId | null, requestId: request as RequestId };
}

/** Its figures: each token that was computed costs 1, a cached one 0.1. */
export function figuresOf(said: SaidPrompt): PromptFigures {
  const { model = "gpt", prompt = 2_000, expected = 0, missed = 0, cause = "unknown", cached, ms } = said;
  const miss = missed === 0 ? null : { cause, tokens: missed };
  const usage: PromptUsage = {
    promptTokens: prompt,
    expectedTokens: expected,
    carriedTokens: 7,
    planned: miss,
    miss,
    report: cached === undefined ? null : { cachedTokens: cached, promptTokens: prompt },
    firstTokenMs: ms ?? null,
  };
  const savedMoney = 0.9 * (prompt - uncachedTokens(usage));
  return { model, usage, apart: said.apart ?? null, savedMoney, missedMoney: 0.9 * missed };
}
