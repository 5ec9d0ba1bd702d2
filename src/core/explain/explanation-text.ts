import type { EpochReason } from "../conversation/epoch.js";
import type { Label } from "../text/ids.js";
import type {
  Difference,
  EngineVerdict,
  Explanation,
  IndexVerdict,
  MissCause,
  PlaceInPrompt,
  Waste,
} from "./explanation.js";

/** Why an epoch began, after "because". */
const EPOCH_BEGAN: Readonly<Record<EpochReason, string>> = {
  ratio: "the epoch's prompts would have passed the history ratio on average",
  cost: "another prompt of the epoch would have cost more than its prompts did on average",
  share: "another prompt would have been longer than the conversation's share of the engine's cache",
  limit: "another prompt of the epoch would have been longer than a prompt may be",
  window: "the client cut its history, and the prompt has exactly the client's messages",
  summary: "the client put other messages in place of those that it cut",
};

/** Displayed characters of a digest. */
const SHOWN_OF_DIGEST = 8;

/**
 * An explanation in plain English: up to seven sentences that contain only numbers, labels, request ids and shortened digests.
 * Deterministic.
 */
export function explanationText(explanation: Explanation): readonly string[] {
  const { difference, cause, tokens, nearest } = explanation;
  const { total, shared, expected } = tokens;
  if (nearest === null || difference === null) {
    const reuse = `There was no prefix to reuse: all of its ${count(total, "token")} had to be computed.`;
    return [
      `Request ${explanation.requestId} is the first prompt of its user and agent.${expected === 0 ? ` ${reuse}` : ""}`,
      ...indexWords(explanation.index, explanation),
      ...engineWords(explanation.engine, explanation),
    ];
  }
  const name = nearest.requestId === null ? "an earlier request" : `request ${nearest.requestId}`;
  const whose = { same: "the same conversation", other: "another conversation", none: "a single prompt" }[
    nearest.conversation
  ];
  const which = `${name} (${whose}, ${duration(nearest.ageMs)} before it)`;
  const begins =
    shared === 0
      ? `Request ${explanation.requestId} shares no prefix with the ${count(explanation.compared, "earlier prompt")} searched. It is compared with ${which}.`
      : `Request ${explanation.requestId} shares a prefix with ${which}: ${shared === total ? "all" : `the first ${number(shared)}`} of its ${count(total, "token")}.`;
  return [
    begins,
    ...whereWords(difference, cause),
    causeWords(cause),
    ...indexWords(explanation.index, explanation),
    ...engineWords(explanation.engine, explanation),
    ...costWords(explanation),
    ...(explanation.comparedAll
      ? []
      : [`Only the ${number(explanation.compared)} earlier prompts most likely to share a prefix were searched.`]),
  ];
}

function whereWords({ message, token, block, here, there }: Difference, { kind }: MissCause): string[] {
  if (kind === "repeated") return [];
  if (kind === "appended") return [`It continues in messages[${message}], where the earlier prompt ends.`];
  const nth = block === null ? "" : ` (number ${block + 1} of this turn)`;
  return [
    `They first differ in messages[${message}], at token ${number(token)}: ${placeWords(here)}${nth} here, ${placeWords(there)} in the earlier prompt.`,
  ];
}

function placeWords(place: PlaceInPrompt | null): string {
  switch (place?.kind) {
    case undefined:
      return "the end of the prompt";
    case "instructions":
    case "message": {
      const digest = place.digest?.slice(0, SHOWN_OF_DIGEST) ?? "unknown";
      return place.kind === "instructions"
        ? `an instruction (digest ${digest})`
        : `a message${place.role === null ? "" : ` of role ${place.role}`} (digest ${digest})`;
    }
    case "opening":
      return "the start of injected memories";
    case "block":
      return `memory ${label(place.label)}`;
    case "annotation":
      return "an annotation";
    case "closing":
      return "the end of injected memories";
    case "erased":
      return "a section from which a memory was deleted since";
  }
}

function causeWords(cause: MissCause): string {
  switch (cause.kind) {
    case "first_prompt":
      return "There is no earlier prompt.";
    case "appended":
      return "Nothing before that changed. The prompt only grew, which is the best case.";
    case "repeated":
      return "The whole prompt is a prefix of the earlier one.";
    case "new_epoch":
      return `A new epoch began because ${EPOCH_BEGAN[cause.reason]}. Earlier prompts have messages in front that this one does not have.`;
    case "changed_instructions":
      return "The instructions changed, so everything after them is computed again. Keep varying text (a date, a list of memories) out of them.";
    case "other_question":
      return "Only the last message differs, which is the best case for another question.";
    case "rewritten_history":
      return "A message of this conversation was edited, regenerated or truncated. Nothing after it can be reused.";
    case "other_history":
      return "The two prompts have different messages from there on.";
    case "fresh_start":
      return cause.where === "here"
        ? 'Retention "auto" started the conversation afresh, because that was expected to be cheaper. What earlier turns injected was removed from the history; a memory among it is injected again when it is retrieved.'
        : "The earlier prompt had started afresh, without what earlier turns injected. This prompt contains it.";
    case "retention":
      return `Retention "${cause.retention}" removed the ${cause.what} of an earlier turn from the history, so everything after them is computed again.`;
    case "forgotten_memory":
      return "A memory at that place was forgotten on request. Its label is not stored.";
    case "updated_text":
      return cause.was === cause.is
        ? `Memory ${label(cause.is)} is the same, but only one of the two prompts names memories that it replaces.`
        : `A memory's text was updated: ${label(cause.is)} supersedes ${label(cause.was)}.`;
    case "new_memories":
      if (cause.instead === null)
        return `Memory ${label(cause.label)} is new. The earlier prompt's memories end before it.`;
      return cause.insteadMoved
        ? `Memory ${label(cause.label)} is not in the earlier prompt. Here it precedes ${label(cause.instead)}, which both have.`
        : `Memory ${label(cause.label)} is not in the earlier prompt. ${label(cause.instead)}, which was at its place, was not retrieved this time.`;
    case "missing_memory":
      return cause.instead === null
        ? `Memory ${label(cause.label)} was not retrieved this time. This prompt's memories end before it.`
        : `Memory ${label(cause.label)} was not retrieved this time. ${label(cause.instead)}, which both have, is at its place.`;
    case "changed_order":
      return `Both have memories ${label(cause.here)} and ${label(cause.there)}, in different orders.`;
    case "other_annotations":
      return "The memories are the same. The annotations after them differ.";
  }
}

function indexWords(verdict: IndexVerdict, { tokens: { shared, expected } }: Explanation): string[] {
  if (verdict.kind === "nothing_shared")
    return expected === 0
      ? []
      : [
          `memprefix expected ${count(expected, "cached token")}: other users' prompts begin with the same instructions.`,
        ];
  if (verdict.kind === "expected") {
    const rest = shared - expected;
    const uncounted =
      rest > 0 ? ` The index does not count ${count(rest, "shared token")} inside or after messages.` : "";
    return [`memprefix expected ${count(expected, "cached token")}.${uncounted}`];
  }
  const because = ((): string => {
    switch (verdict.because.kind) {
      case "evicted":
        return "the engine had reported that prompt as evicted";
      case "forgotten":
        return "a memory of that prompt was forgotten, which removed everything after it from the index";
      case "expired":
        return `the configured TTL is ${duration(verdict.because.ttlMs)}`;
      case "reported":
        return `the report of request ${verdict.because.requestId} in between showed fewer cached tokens`;
      case "displaced":
        return `the cache holds ${count(verdict.because.tokens, "token")}, and prompts since, of any user, took its place`;
      case "slots":
        return `the engine keeps ${count(verdict.because.slots, "prompt")}, and later ones replaced it`;
      case "unknown":
        return "it left the index for a reason that is not stored";
    }
  })();
  return [
    `memprefix expected only ${count(expected, "cached token")}, ${number(verdict.tokens)} fewer than the index once held: ${because}.`,
  ];
}

function engineWords(verdict: EngineVerdict, { tokens }: Explanation): string[] {
  const reported = `The engine reported ${count(tokens.reported ?? 0, "cached token")}`;
  switch (verdict.kind) {
    case "not_reported":
      return ["The engine's cached tokens were not reported. Post its usage to /feedback."];
    case "as_expected":
      return [`${reported}, as expected.`];
    case "more":
      return [`${reported}, ${number(verdict.tokens)} more than expected.`];
    case "less":
      break;
  }
  const { because } = verdict;
  const reason = ((): string => {
    switch (because.kind) {
      case "below_minimum":
        return `it caches no prefix shorter than ${count(because.minimumTokens, "token")}`;
      case "block_rounding":
        return `it caches whole blocks of ${count(because.blockTokens, "token")}`;
      case "evicted":
        return "it evicted the earlier prompt";
      case "in_flight":
        return "the earlier prompt was sent moments before and may not have been cached yet";
      case "no_breakpoint":
        return "it bills cache writes and caches only up to a breakpoint (check that one was sent)";
      case "unknown":
        return "it no longer held the rest, or never did";
    }
  })();
  return [`${reported}, ${number(verdict.tokens)} fewer than expected: ${reason}.`];
}

function costWords({ lost, behind, tokens }: Explanation): string[] {
  const words = [];
  if (lost.tokens > 0) {
    const not = tokens.reported === null ? "not expected to be cached" : "not cached";
    words.push(`${count(lost.tokens, "token")} of the shared prefix, ${not}${price(lost)}`);
  }
  if (behind.tokens > 0) words.push(`${count(behind.tokens, "token")} after the difference${price(behind)}`);
  return words.length === 0 ? [] : [`Computed although both prompts have them: ${words.join("; ")}.`];
}

/** Empty if the engine's cache could not have served another block. */
function price({ price: { unit, amount } }: Waste): string {
  if (amount === 0) return "";
  const rounded = Number(amount.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 });
  return unit === "ms" ? ` (about ${rounded} ms)` : ` (about ${rounded} in the configured prices)`;
}

function label(value: Label | null): string {
  return value === null ? "[?]" : `[${value}]`;
}

function number(value: number): string {
  return value.toLocaleString("en");
}

function count(value: number, unit: string): string {
  return `${number(value)} ${unit}${value === 1 ? "" : "s"}`;
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

function duration(ms: number): string {
  const [size, name] = UNITS.find(([least]) => ms >= least) ?? [1, "ms"];
  return `${number(Math.round(ms / size))} ${name}`;
}
