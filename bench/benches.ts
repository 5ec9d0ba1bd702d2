/** The programs that `npm run bench -- NAME` runs, with what each measures. The header of its file has its settings and its floor. */
export const BENCHES: Readonly<Record<string, string>> = {
  headline: "the README's table: tokens per prompt with and without memprefix",
  retention: "what a turn costs under each retention",
  loop: "what Mem0's whole loop costs a turn, reading and writing",
  "batched-facts": "whether Mem0 finds the same facts in exchanges that are added together",
  windows: "clients that send only the last messages of a conversation",
  shared: "conversations that share one engine's cache",
  peers: "hits of each ordering policy on recorded searches",
  "peer-orders": "records the orders that ContextPilot's own code gives",
  "shared-corpus": "one corpus that many users search",
  capacity: "policies in one cache of limited size that six users share",
  routing: "prompts of six users, routed to several workers",
  residency: "how far a plan's expectation is from a small engine's cache",
  events: "what an engine's KV events add: hits, and how far expectations are off",
  batch: "plans of requests that are known beforehand (Alg. 4, 5)",
  papers: "the programs of docs/papers.md, by a second name",
  depth: "whether a sure first token needs fewer memories, on vLLM",
  instructions: "a system text that changes each turn, kept as it was first, on vLLM",
  annotations: "ContextPilot's annotations and ours, by likelihood, on vLLM",
  spans: "references in place of repeated parts of tools' results, on vLLM",
  engines: "time to the first token on a real engine, with and without memprefix",
  proxy: "time that the proxy adds to a direct call",
  load: "composes per second, memory and bytes of the built service",
  crash: "the built service, killed again and again",
};

/** Those that run `dist/`, which is built first. */
export const OF_THE_BUILD: ReadonlySet<string> = new Set(["crash", "engines", "load", "proxy"]);
