import type { CacheReading } from "../../core/index.js";

const SAMPLE = /^([a-z_]+:[a-z_]+)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const MOST_TOKENS = 1e15;
const MOST_BLOCK_TOKENS = 65_536;

interface Sample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/**
 * Reads the prefix cache from `GET /metrics` of vLLM, or of SGLang with `--enable-metrics`, in tokens. Missing or implausible values are null. Data
 * parallel ranks are summed. llama.cpp does not report its size.
 */
export function readCacheMetrics(exposition: string): CacheReading {
  const samples = samplesIn(exposition);
  const of = (name: string) => samples.get(name) ?? [];
  const configs = of("vllm:cache_config_info").map(({ labels }) => {
    const number = (label: string) => Number(labels.get(label) ?? Number.NaN);
    const isOff = labels.get("enable_prefix_caching") === "False";
    const size = number("kv_cache_size_tokens");
    const block = number("block_size");
    return { block, tokens: isOff ? Number.NaN : size > 0 ? size : number("num_gpu_blocks") * block };
  });
  const pages = of("sglang:page_size").map(({ value }) => value);
  const capacity = sum(configs.map(({ tokens }) => tokens)) ?? sum(perRank(of("sglang:max_total_num_tokens")));
  const blocks = [...configs.map(({ block }) => block), ...pages];
  const block = blocks.length > 0 && blocks.every((one) => one === blocks[0]) ? (blocks[0] as number) : Number.NaN;
  return {
    capacityTokens: capacity !== null && capacity >= 1 ? Math.floor(capacity) : null,
    blockTokens: Number.isInteger(block) && block >= 1 && block <= MOST_BLOCK_TOKENS ? block : null,
    computedTokens:
      computed(of("vllm:prefix_cache_queries_total"), of("vllm:prefix_cache_hits_total")) ??
      computed(of("sglang:prompt_tokens_total"), of("sglang:cached_tokens_total")),
  };
}

function samplesIn(exposition: string): ReadonlyMap<string, readonly Sample[]> {
  const samples = new Map<string, Sample[]>();
  for (const line of exposition.split("\n")) {
    if (!line.startsWith("vllm:") && !line.startsWith("sglang:")) continue;
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (!READ.has(name)) continue;
    const sample = {
      labels: new Map([...labels.matchAll(LABEL)].map(([, label = "", text = ""]) => [label, text])),
      value: Number(value),
    };
    samples.set(name, [...(samples.get(name) ?? []), sample]);
  }
  return samples;
}

const READ: ReadonlySet<string> = new Set([
  "vllm:cache_config_info",
  "vllm:prefix_cache_queries_total",
  "vllm:prefix_cache_hits_total",
  "sglang:max_total_num_tokens",
  "sglang:page_size",
  "sglang:prompt_tokens_total",
  "sglang:cached_tokens_total",
]);

/** Tensor parallel ranks hold the same tokens, data parallel ranks their own. */
function perRank(samples: readonly Sample[]): readonly number[] {
  const ranks = new Map<string, number>();
  for (const { labels, value } of samples) {
    const rank = `${labels.get("dp_rank") ?? ""} ${labels.get("model_name") ?? ""}`;
    ranks.set(rank, Math.max(ranks.get(rank) ?? 0, value));
  }
  return [...ranks.values()];
}

/** Requested tokens minus cached ones; null if either is missing or impossible. */
function computed(asked: readonly Sample[], found: readonly Sample[]): number | null {
  const [all, cached] = [asked, found].map((samples) => sum(samples.map(({ value }) => value)));
  if (all == null || cached == null || cached > all) return null;
  return all - cached;
}

function sum(numbers: readonly number[]): number | null {
  if (numbers.length === 0) return null;
  const total = numbers.every((one) => one >= 0) ? numbers.reduce((all, one) => all + one, 0) : Number.NaN;
  return total <= MOST_TOKENS ? total : null;
}
