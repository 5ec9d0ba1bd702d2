import type { UsageCause } from "../../service/usage/usage-figures.js";

/** A cause of misses in a few words, and what to do about it. */
interface CauseTexts {
  readonly title: string;
  readonly advice: string;
}

const TEXTS: Readonly<Record<UsageCause, CauseTexts>> = {
  rewritten_history: {
    title: "The client rewrote its history",
    advice:
      "Send earlier messages as they were: append to the conversation, and do not edit, shorten or reformat what was sent. Where a client cuts its history, history: extended keeps what it cut.",
  },
  changed_instructions: {
    title: "The instructions changed",
    advice: "Keep dates, names and lists of memories out of the system message: put what varies behind the messages.",
  },
  changed_order: {
    title: "Memories came in another order",
    advice:
      "Use the policy prefix-exact or carry-over, which begin with what is cached. Do not sort memories before composing.",
  },
  new_memories: {
    title: "New memories stood in front of known ones",
    advice: "Use the policy carry-over, or a larger memory budget: known memories then stay in front of new ones.",
  },
  new_epoch: {
    title: "A new epoch of a cut history began",
    advice: "Raise history_ratio, or the client's window, for longer epochs; see docs/windows.md.",
  },
  retention: {
    title: "Memories of earlier turns were dropped",
    advice: "Use retention keep, or auto: it drops them only where that costs less than it saves.",
  },
  expired: {
    title: "The cache had expired",
    advice:
      "Nothing is wrong with the prompts: they came later than the cache keeps a prefix. Buy a longer TTL if the provider has one.",
  },
  evicted: {
    title: "The engine evicted it",
    advice:
      "Give the engine more memory for its cache, or send a conversation's prompts to one replica (MEMSTEM_ROUTER, workers).",
  },
  below_minimum: {
    title: "Shorter than what the provider caches",
    advice:
      "Nothing can be cached of these prompts. Put instructions that all requests share into the head to reach the minimum.",
  },
  engine_restart: {
    title: "The engine was restarted",
    advice: "Restart engines one by one; a router that knows conversations sends them elsewhere meanwhile.",
  },
  in_flight: {
    title: "The prompt before was not written yet",
    advice: "Send a conversation's prompts one after the other: what is still being computed cannot be read.",
  },
  unknown: {
    title: "Unknown",
    advice:
      "memstem expected a hit and knows no reason. Likely the engine evicted it without saying so, the request went to another replica, or no breakpoint marked the prefix. Look at one of these requests' explanations.",
  },
};

export function causeTexts(cause: UsageCause): CauseTexts {
  return TEXTS[cause];
}
