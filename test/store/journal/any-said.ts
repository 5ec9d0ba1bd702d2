import fc from "fast-check";
import {
  type Annotation,
  type ChatMessage,
  type ContentPart,
  type ConversationId,
  type Digest,
  EPOCH_REASONS,
  type EpochReason,
  FIXED_RETENTIONS,
  type InjectedBlock,
  type Injection,
  MISS_CAUSES,
  meaningDigest,
  messageDigest,
  type PlacedMemory,
  type Plan,
  type PlanDepth,
  POLICY_NAMES,
  SECTION_PLACEMENTS,
  type Turn,
  type Warning,
} from "../../../src/core/index.js";
import type { EngineReport, StoredAnswer } from "../../../src/store/api/store.js";
import type { ComposedRecord } from "../../../src/store/journal/said-codec.js";
import { type SaidTurn, SharedMessage } from "../../../src/store/journal/said-codec.js";
import { anyCount, anyDigest, anyLabel, anyLabels, anyMemoryId, anyText, anyTime, anyTurnId } from "./any-rows.js";

const anyConversation = fc.option(anyText as unknown as fc.Arbitrary<ConversationId>);

/** Optional fields: each is there or absent. */
function partly<Fields extends object>(fields: { readonly [K in keyof Fields]: fc.Arbitrary<Fields[K]> }) {
  return fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Partial<Fields>>;
}

const anyCall = fc.record({
  id: anyText,
  type: fc.constant("function"),
  function: fc.record({ name: anyText, arguments: fc.constantFrom("{}", '{"b":1,"a": 2}', "not JSON") }),
});
const anyPart: fc.Arbitrary<ContentPart> = fc.oneof(
  anyText.map((text) => ({ type: "text", text })),
  anyText.map((url) => ({ type: "image_url", image_url: { url } })),
);

/** Messages that mean what they are, and others; fields in any order. */
const anyMessage: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "assistant"), content: anyText }),
  fc.record({ content: fc.array(anyPart, { maxLength: 3 }), role: fc.constant("user"), name: anyText }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.constant(null),
    tool_calls: fc.array(anyCall, { maxLength: 2 }),
  }),
  fc.record({
    role: fc.constant("assistant"),
    content: anyText,
    reasoning_content: anyText,
    refusal: fc.constant(null),
  }),
  fc.record({ tool_call_id: anyText, role: fc.constant("tool"), content: anyText }),
);

const anyBlock: fc.Arbitrary<InjectedBlock> = fc.record({ label: anyLabel, replaces: anyLabels });

const anyAnnotation: fc.Arbitrary<Annotation> = fc.oneof(
  fc.record({ kind: fc.constantFrom("order" as const, "location" as const), template: anyText, labels: anyLabels }),
  fc.record({ kind: fc.constant("restored" as const), label: anyLabel, replaces: anyLabels }),
  fc.record({ kind: fc.constant("withdrawn" as const), labels: anyLabels }),
);

/** Of a section without labels: each quotes one text. */
const anyQuote: fc.Arbitrary<Annotation> = fc.oneof(
  fc.record({ kind: fc.constantFrom("best" as const, "outdated" as const), labels: fc.tuple(anyLabel) }),
  fc.record({
    kind: fc.constant("restored" as const),
    label: anyLabel,
    replaces: anyLabels,
    isQuoted: fc.constant(true as const),
  }),
);

const anyInjection: fc.Arbitrary<Injection> = fc.oneof(
  fc.record({
    blocks: fc.array(
      anyBlock.map((block) => ({ ...block, isLabelled: true as const })),
      { maxLength: 4 },
    ),
    annotations: fc.array(anyAnnotation, { maxLength: 3 }),
  }),
  fc.record({
    blocks: fc.array(anyBlock, { maxLength: 4 }),
    annotations: fc.array(anyQuote, { maxLength: 3 }),
  }),
);

/** A message with its digests; also one with others' digests, as where a turn was restated. In a row of its own, by either kind of key. */
const anySaid = fc.record({
  message: anyMessage,
  form: fc.constantFrom("here", "erased", "by digest", "by another key"),
  key: anyDigest,
  other: fc.option(fc.record({ given: anyDigest, meant: anyDigest }), { freq: 4 }),
});

const anySaidTurn: fc.Arbitrary<SaidTurn> = fc
  .record({
    said: fc.array(anySaid, { maxLength: 3 }),
    /** Turns whose sections a fresh start keeps; null: it is none. */
    kept: fc.option(fc.nat(3)),
    turn: fc.record({
      id: anyTurnId,
      conversationId: anyConversation,
      parent: fc.option(anyTurnId),
      placement: fc.constantFrom(...SECTION_PLACEMENTS),
      injection: anyInjection,
      retention: fc.constantFrom(...FIXED_RETENTIONS),
      requested: anyLabels,
      head: anyDigest,
      prompt: anyDigest,
      anchor: anyDigest,
      promptTokens: anyCount,
      computedTokens: anyCount,
      epoch: anyTurnId,
      behind: fc.option(anyDigest),
    }),
  })
  .map(({ said, kept, turn: any }) => {
    const turn = { ...any, freshStart: kept !== null, keptTurns: kept ?? 0 };
    const digests = said.map(({ message, other }) => {
      const given = messageDigest(message);
      return other ?? { given, meant: meaningDigest(message, given) };
    });
    const whole: Turn = { ...turn, given: digests.map(({ given }) => given), meant: digests.map(({ meant }) => meant) };
    const given = said.map(({ message, form, key }, at) => {
      if (form === "here" || form === "erased") return form === "here" ? message : null;
      return new SharedMessage(form === "by digest" ? (whole.given[at] as Digest) : key);
    });
    return { turn: whole, given };
  });

const anyPlacedMemory: fc.Arbitrary<PlacedMemory> = fc.record({
  label: anyLabel,
  memoryId: anyMemoryId,
  placement: fc.constantFrom("cached_prefix", "new", "earlier_turn", "carried_over"),
  rank: fc.option(anyCount),
  replaces: anyLabels,
});

const anyDepth: fc.Arbitrary<PlanDepth> = fc.record({
  outcome: fc.constantFrom("sure", "unsure", "few", "fixed_start", "unclear", "unavailable", "failed"),
  probes: fc.array(
    fc.record({
      blocks: anyCount,
      entropy: fc.option(fc.double({ min: 0, max: 12, noNaN: true }).map((nats) => nats + 0)),
      promptTokens: fc.option(anyCount),
      cachedTokens: fc.option(anyCount),
    }),
    { maxLength: 2 },
  ),
  retrieved: anyCount,
  given: anyCount,
});

const anyPlan = fc
  .record({
    always: fc.record({
      retention: fc.constantFrom(...FIXED_RETENTIONS),
      freshStart: fc.boolean(),
      layout: fc.constantFrom("single", "conversation"),
      policy: fc.constantFrom(...POLICY_NAMES, "batch", "another's"),
      expectedCachedTokens: anyCount,
      uncachedTokens: anyCount,
      totalTokens: anyCount,
      miss: fc.option(fc.record({ cause: fc.constantFrom(...MISS_CAUSES), tokens: anyCount })),
      searchPath: fc.array(anyCount, { maxLength: 3 }),
      orderChanged: fc.boolean(),
      stableMessages: anyCount,
    }),
    more: partly({
      addedMessages: anyCount,
      epoch: fc.record({
        began: fc.option(fc.constantFrom<EpochReason>(...EPOCH_REASONS)),
        prompts: anyCount,
        leftOut: anyCount,
        headTokens: anyCount,
        carriedTokens: anyCount,
      }),
      depth: anyDepth,
    }),
  })
  .map(({ always, more }): Plan => ({ ...always, ...more }) as Plan);

const anyWarning = fc.record(
  { code: fc.constantFrom("memory_cut", "duplicate_text"), message: anyText, memoryIds: fc.array(anyMemoryId) },
  { requiredKeys: ["code", "message"] },
) as fc.Arbitrary<Warning>;

const anyAnswer: fc.Arbitrary<StoredAnswer> = fc
  .record({
    memories: fc.array(anyPlacedMemory, { maxLength: 4 }),
    plan: anyPlan,
    warnings: fc.array(anyWarning, { maxLength: 2 }),
    grounds: fc.option(fc.record({ settledAt: anyTime, headTokens: anyCount })),
    worker: fc.option(anyText),
  })
  .map(({ worker, ...answer }) => (worker === null ? answer : { ...answer, worker }));

export const anyComposedRecord: fc.Arbitrary<ComposedRecord> = fc.record({
  turns: fc.array(anySaidTurn, { minLength: 1, maxLength: 3 }),
  sections: fc.array(anyDigest, { maxLength: 2 }),
  request: fc.option(fc.record({ body: anyDigest, answer: anyAnswer })),
});

export const anyReport: fc.Arbitrary<EngineReport> = partly({
  promptTokens: anyCount,
  cachedTokens: anyCount,
  ttftMs: fc.double({ min: 0, max: 1e6, noNaN: true }).map((ms) => ms + 0),
});
