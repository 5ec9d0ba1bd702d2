import { lateInRow, type PromptEnd, unreadEnds } from "../../core/cost/expected-reads.js";
import { type Composition, hasOnlyText } from "../../core/index.js";
import type { WorkingScope } from "../scopes/working-scopes.js";
import type { RequestTerms } from "./request-terms.js";

export interface ChosenMarks {
  /** Ends without a cache mark: no later prompt is expected to read them. */
  readonly unread: readonly PromptEnd[];
  /** How many of the conversation's turns in a row came too late to read the one before. */
  readonly lateInRow: number;
}

/** Which ends of a prompt are worth a cache mark. @param wereDrafted whether its depth was chosen by drafts that were sent just now */
export function chooseMarks(
  working: WorkingScope,
  { request, price }: RequestTerms,
  { plan, memories, messages, head }: Composition,
  { at, wereDrafted }: { readonly at: number; readonly wereDrafted: boolean },
): ChosenMarks {
  const before = working.earlier.get(request.conversationId);
  const late = price === null || before === undefined ? 0 : lateInRow(before.lateInRow, at - before.at, price);
  const areCached = memories.length > 0 && memories.every(({ placement }) => placement === "cached_prefix");
  // Counts miss images, and what a caller adds who sends the prompt itself.
  const { destination } = request;
  const isCounted = destination != null && messages.every(hasOnlyText);
  const unread = unreadEnds(price, {
    layout: plan.layout,
    wereSent: wereDrafted || areCached,
    tokens: isCounted ? plan.totalTokens + destination.besideTokens : null,
    hasHistory: messages.length - head.length > 1,
    lateInRow: late,
  });
  return { unread, lateInRow: late };
}
