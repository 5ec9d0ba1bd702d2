import {
  canonicalText,
  type Digest,
  digestOf,
  type Label,
  type RetrievedBlock,
  type TokenCounter,
} from "../../core/index.js";
import type { ComposeRequest } from "../compose/compose-request.js";

/** A scope within a batch: its tenant is the caller's. */
export type BatchScope = Pick<ComposeRequest, "userId" | "agentId">;

export function scopeName({ userId, agentId }: BatchScope): string {
  return JSON.stringify([userId, agentId]);
}

/** The blocks of a batch, numbered for the planner. Scopes share no number, so they share no prefix. */
export class BatchBlocks {
  readonly #texts = new Map<string, { readonly digest: Digest; readonly tokens: number }>();
  readonly #numbers = new Map<string, Label>();
  /** By number. */
  readonly #digests: Digest[] = [];
  readonly #tokens: number[] = [];

  constructor(private readonly countTokens: TokenCounter) {}

  /** The block of a memory's text. */
  take(scope: string, text: string): RetrievedBlock {
    const canonical = canonicalText(text);
    let known = this.#texts.get(canonical);
    if (known === undefined) {
      known = { digest: digestOf(canonical), tokens: this.countTokens(`0 ${canonical}\n`) };
      this.#texts.set(canonical, known);
    }
    const name = nameOf(scope, known.digest);
    let label = this.#numbers.get(name);
    if (label === undefined) {
      label = this.#digests.length as Label;
      this.#numbers.set(name, label);
      this.#digests.push(known.digest);
      this.#tokens.push(known.tokens);
    }
    return { label, tokens: known.tokens };
  }

  /** A scope's block that was taken before. Throws for others. */
  get(scope: string, text: Digest): RetrievedBlock {
    const label = this.#numbers.get(nameOf(scope, text));
    if (label === undefined) throw new Error("batch blocks: a block that was never taken");
    return { label, tokens: this.#tokens[label] ?? 0 };
  }

  /** The number of a scope's block; undefined where the batch does not have it. */
  find(scope: string, text: Digest): Label | undefined {
    return this.#numbers.get(nameOf(scope, text));
  }

  textOf(label: Label): Digest {
    return this.#digests[label] as Digest;
  }
}

function nameOf(scope: string, text: Digest): string {
  return `${text} ${scope}`;
}
