import type { BlockRegister } from "../blocks/block-register.js";
import type { StoredBlock } from "../blocks/context-block.js";
import type { SeenRetrievals } from "../blocks/seen-retrievals.js";
import type { EngineModel } from "../cost/engine-model.js";
import type { AnnotationSettings } from "../prompt/annotations.js";
import { isEmptyInjection } from "../prompt/injection.js";
import { type DigestedMessages, messagesTokens } from "../prompt/prompt.js";
import type { Label } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";
import { autoRetention, type SectionSize } from "./auto-retention.js";
import { NOTHING_STANDING, type Standing, standingOf } from "./conversation.js";
import { injectionTokens, planInjection, supersededIn } from "./injecting.js";
import type { Replay } from "./replay.js";
import type { RetentionChoice } from "./retention.js";
import type { Turn } from "./turn.js";

/** A turn whose retention is to be chosen. */
export interface RetainableTurn {
  /** The replay of earlier turns without a fresh start. */
  readonly replay: Replay;
  readonly seen: SeenRetrievals;
  /** Whether the client wrote earlier turns otherwise than before, with the same meaning. */
  readonly isRestated: boolean;
  /** Distinct retrieved blocks, in relevance order. */
  readonly requested: readonly StoredBlock[];
  readonly answer: DigestedMessages;
  readonly question: DigestedMessages;
  readonly placement: Turn["placement"];
  readonly annotations: AnnotationSettings;
  readonly engine: EngineModel;
  /** Tokens of a prompt that the engine keeps until the next turn. Default: any. */
  readonly shareTokens?: number | undefined;
  /** Leading tokens of the newest prompt that it still holds, at most. Default: all. */
  readonly residentTokens?: number | undefined;
  readonly countTokens: TokenCounter;
}

/** Chooses a turn's retention by {@link autoRetention}, from the turn's token counts. */
export function chooseRetention(turn: RetainableTurn, register: BlockRegister): RetentionChoice {
  const { replay, seen, requested, countTokens } = turn;
  const answered = messagesTokens(turn.answer.messages, countTokens);
  const section = (standing: Standing): SectionSize => {
    const injection = planInjection(register, {
      superseded: supersededIn(register, standing),
      requested,
      standing,
      // In relevance order: a possible order annotation is not counted.
      placed: requested.map(({ label }) => label).filter((label) => !standing.given.has(label)),
      carried: new Set(),
      placement: turn.placement,
      settings: turn.annotations,
    });
    const total = injectionTokens(injection, turn.placement, register, countTokens);
    const bare = { blocks: injection.blocks, annotations: [] };
    const withoutAnnotations = isEmptyInjection(bare)
      ? 0
      : injectionTokens(bare, turn.placement, register, countTokens);
    return { total, annotations: total - withoutAnnotations };
  };
  const standing = standingOf(replay.turns.map(({ injection }) => injection));
  const going = section(standing);
  // The engine computed the answer itself, so a prompt cached up to the end of its last turn has the answer cached too. What a client writes
  // otherwise than before may reach the engine as it did before, so nothing is dropped because of it.
  const isWhole = replay.cachedTokens === replay.tokens || turn.isRestated;
  const answers = [...replay.turns.slice(1).map(({ tokens }) => tokens.answer), answered];
  return autoRetention(
    turn.engine,
    {
      seen,
      retrieved: requested,
      question: messagesTokens(turn.question.messages, countTokens),
      answer: answers.reduce((sum, tokens) => sum + tokens, 0) / answers.length,
      before: {
        total: replay.tokens + answered,
        cached: Math.min(
          isWhole ? replay.tokens + answered : replay.cachedTokens,
          turn.residentTokens ?? Number.POSITIVE_INFINITY,
        ),
      },
      standing: standingTokens(replay, answered, register),
      going: { ...going, newBlocks: requested.filter(({ label }) => !standing.given.has(label)).length },
      afresh: section(NOTHING_STANDING),
      share: turn.shareTokens ?? Number.POSITIVE_INFINITY,
    },
    countTokens,
  );
}

function standingTokens(replay: Replay, answered: number, register: BlockRegister) {
  const blocks = new Map<Label, number>();
  let frames = 0;
  const plain = { inFront: replay.headTokens, behind: answered };
  for (const { injection, tokens } of replay.turns) {
    const hasBegun = frames > 0 || blocks.size > 0;
    const stands = !isEmptyInjection(injection);
    let inBlocks = 0;
    for (const { label } of injection.blocks) {
      const size = register.get(label)?.tokens ?? 0;
      blocks.set(label, size);
      inBlocks += size;
    }
    frames += tokens.section - inBlocks;
    plain[hasBegun ? "behind" : "inFront"] += tokens.answer;
    plain[hasBegun || stands ? "behind" : "inFront"] += tokens.question;
  }
  if (blocks.size === 0 && frames === 0)
    return { blocks, frames, plain: { inFront: plain.inFront + answered, behind: 0 } };
  return { blocks, frames, plain };
}
