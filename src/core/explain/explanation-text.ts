import type { EpochReason } from "../conversation/epoch.js";
import type { Label } from "../text/ids.js";
import type { Difference, EngineVerdict, Explanation, IndexVerdict, PlaceInPrompt, Waste } from "./explanation.js";
import type { MissCause } from "./miss-cause.js";

/** Why an epoch began, behind "because". */
const EPOCH_BEGAN: Readonly<Record<EpochReason, string>> = {
  ratio: "the epoch's prompts would have passed the history ratio on average",
  cost: "another prompt of the epoch would have cost more than its prompts did on average",
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
  const { total, shared } = tokens;
  if (nearest === null || difference === null) {
    return [
      `Request ${explanation.requestId} is the first prompt of its user and agent: with nothing before it to begin like, all of its ${count(total, "token")} had to be computed.`,
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
      ? `Request ${explanation.requestId} shares nothing from the start with the ${count(explanation.compared, "earlier prompt")} compared; it is set against ${which}.`
      : `Request ${explanation.requestId} begins like ${which}: ${shared === total ? `all of its ${count(total, "token")} are` : `the first ${number(shared)} of its ${count(total, "token")} are`} the same.`;
  return [
    begins,
    ...whereWords(difference, cause),
    causeWords(cause),
    ...indexWords(explanation.index, explanation),
    ...engineWords(explanation.engine, explanation),
    ...costWords(explanation),
    ...(explanation.comparedAll
      ? []
      : [`Only the ${number(explanation.compared)} earlier prompts that are likeliest to be near were compared.`]),
  ];
}

function whereWords({ message, token, block, here, there }: Difference, { kind }: MissCause): string[] {
  if (kind === "repeated") return [];
  if (kind === "appended") return [`It goes on in messages[${message}], where the other ends.`];
  const nth = block === null ? "" : ` (number ${block + 1} of this turn's)`;
  return [
    `They first differ in messages[${message}], at token ${number(token)}: ${placeWords(here)}${nth} stands here, ${placeWords(there)} there.`,
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
      return "the beginning of injected memories";
    case "block":
      return `memory ${label(place.label)}`;
    case "annotation":
      return "a line about the memories";
    case "closing":
      return "the end of the memories";
    case "erased":
      return "a section that has lost a memory since";
  }
}

function causeWords(cause: MissCause): string {
  switch (cause.kind) {
    case "first_prompt":
      return "There is no earlier prompt.";
    case "appended":
      return "Nothing before that changed: the prompt only grew, which is as good as it gets.";
    case "repeated":
      return "All of it stands at the beginning of that prompt: nothing differs.";
    case "new_epoch":
      return `A new epoch began because ${EPOCH_BEGAN[cause.reason]}: prompts before it had messages in front that this one has not.`;
    case "other_instructions":
      return "The instructions changed, and everything behind them is computed again: keep what varies (a date, a list of memories) out of them.";
    case "other_question":
      return "Only the last message differs: everything before it is the same, which is as good as it gets for another question.";
    case "edited_history":
      return "A message of this conversation was edited, regenerated or cut there: what stood behind it cannot be reused.";
    case "other_history":
      return "The two have other messages from there on: what they have in common stands before it.";
    case "fresh_start":
      return cause.where === "here"
        ? 'The conversation started afresh, because retention "auto" found that cheaper: what earlier turns had given was taken out of the history, and is given again where it is wanted.'
        : "The earlier prompt had started afresh, without what earlier turns had given; this one goes on with it.";
    case "not_retained":
      return `Retention "${cause.retention}" took the ${cause.what} that an earlier turn had given out of the history, and everything behind them is computed again.`;
    case "forgotten_memory":
      return "A memory that stood there was forgotten on request; which label it had is not kept.";
    case "updated_text":
      return cause.was === cause.is
        ? `Memory ${label(cause.is)} is the same, but is said to replace others in one of them only.`
        : `A memory's text was updated: ${label(cause.is)} takes the place of ${label(cause.was)}.`;
    case "new_memory":
      if (cause.instead === null)
        return `Memory ${label(cause.label)} is new there: the earlier prompt's memories end before it.`;
      return cause.insteadMoved
        ? `Memory ${label(cause.label)} is not in the earlier prompt and stands before ${label(cause.instead)}, which comes later here.`
        : `Memory ${label(cause.label)} is not in the earlier prompt, and ${label(cause.instead)}, which stood there, was not retrieved this time.`;
    case "missing_memory":
      return cause.instead === null
        ? `Memory ${label(cause.label)} was not retrieved this time: this prompt's memories end before it.`
        : `Memory ${label(cause.label)} was not retrieved this time; ${label(cause.instead)}, which both have, moved up.`;
    case "other_order":
      return `Both have memories ${label(cause.here)} and ${label(cause.there)}, in another order.`;
    case "other_annotations":
      return "The memories are the same; the line behind them, which ranks them or refers to earlier ones, is not.";
  }
}

function indexWords(verdict: IndexVerdict, { tokens: { shared, expected } }: Explanation): string[] {
  if (verdict.kind === "nothing_shared") return [];
  if (verdict.kind === "expected") {
    const rest = shared - expected;
    const uncounted = rest > 0 ? "; the rest is shared where the index does not look, inside or behind messages" : "";
    return [`memstem expected ${count(expected, "cached token")}${uncounted}.`];
  }
  const because = ((): string => {
    switch (verdict.because.kind) {
      case "evicted":
        return "the engine had said that it evicted that prompt";
      case "forgotten":
        return "a memory of that prompt was forgotten, and what stood behind it left the index with it";
      case "ttl":
        return `the configured TTL is ${duration(verdict.because.ttlMs)}`;
      case "reported":
        return `the report of request ${verdict.because.requestId} in between showed that less was there`;
      case "capacity":
        return `the cache is configured to hold ${count(verdict.because.tokens, "token")}`;
      case "slots":
        return `the engine keeps ${count(verdict.because.slots, "prompt")}, and later ones took its place`;
      case "unknown":
        return "it had left the index, and nothing that is stored says why";
    }
  })();
  return [
    `memstem expected only ${count(expected, "cached token")}, ${number(verdict.tokens)} fewer than it once could: ${because}.`,
  ];
}

function engineWords(verdict: EngineVerdict, { tokens }: Explanation): string[] {
  const reported = `The engine reported ${count(tokens.reported ?? 0, "cached token")}`;
  switch (verdict.kind) {
    case "not_reported":
      return ["The engine did not say what it had cached: its usage posted to /feedback would."];
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
        return "the earlier prompt was sent moments before and may not have been written yet";
      case "no_breakpoint":
        return "it bills writes, and caches only up to a breakpoint: see that one was sent";
      case "unknown":
        return "it did not hold the rest any more, or never did";
    }
  })();
  return [`${reported}, ${number(verdict.tokens)} fewer than expected: ${reason}.`];
}

function costWords({ lost, behind, tokens }: Explanation): string[] {
  const words = [];
  if (lost.tokens > 0) {
    const not = tokens.reported === null ? "not expected to be cached" : "not cached";
    words.push(`${count(lost.tokens, "shared token")} ${not}${price(lost)}`);
  }
  if (behind.tokens > 0)
    words.push(`${count(behind.tokens, "token")} that both have, but behind the difference${price(behind)}`);
  return words.length === 0 ? [] : [`Computed all the same: ${words.join("; ")}.`];
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
