import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCacheMetrics } from "../../../src/engines/upstream/cache-metrics.js";

const UNKNOWN = { capacityTokens: null, blockTokens: null, computedTokens: null };

/** As vLLM 0.32 on a CPU writes it, shortened. */
const VLLM = `# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="smol"} 4096.0
vllm:prefix_cache_queries_created{engine="0",model_name="smol"} 1.7641e+09
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="smol"} 1024.0
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",cache_dtype="auto",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="8960",num_gpu_blocks="70",num_gpu_blocks_override="70"} 1.0
`;

describe("what an engine's metrics say of its prefix cache", () => {
  it("is vLLM's capacity, block and computed tokens", () => {
    expect(readCacheMetrics(VLLM)).toEqual({ capacityTokens: 8_960, blockTokens: 128, computedTokens: 3_072 });
  });

  it("is counted in blocks where vLLM does not say it in tokens, and summed over the engines of one address", () => {
    const config = (engine: number) =>
      `vllm:cache_config_info{block_size="16",engine="${engine}",num_gpu_blocks="100"} 1.0\n`;
    expect(readCacheMetrics(config(0))).toEqual({ ...UNKNOWN, capacityTokens: 1_600, blockTokens: 16 });
    expect(readCacheMetrics(config(0) + config(1)).capacityTokens).toBe(3_200);
  });

  it("is SGLang's, whose tensor parallel ranks hold the same tokens", () => {
    const rank = (tp: number, dp: number) =>
      `sglang:max_total_num_tokens{dp_rank="${dp}",model_name="m",tp_rank="${tp}"} 471258.0\n`;
    const counters = `sglang:page_size{model_name="m"} 1.0
sglang:prompt_tokens_total{model_name="m"} 8.128902e+06
sglang:cached_tokens_total{cache_source="device",model_name="m"} 3e6
sglang:cached_tokens_total{cache_source="host",model_name="m"} 1e6
`;
    const read = readCacheMetrics(rank(0, 0) + rank(1, 0) + rank(0, 1) + rank(1, 1) + counters);
    expect(read).toEqual({ capacityTokens: 942_516, blockTokens: 1, computedTokens: 4_128_902 });
  });

  it.each([
    ["nothing", ""],
    ["a page", "<!doctype html><p>vllm:cache_config_info"],
    ["another engine's", 'llamacpp:prompt_tokens_total 12\nprocess_cpu_seconds_total 3.5\nother{a="b"} 1'],
    ["no number", 'vllm:cache_config_info{block_size="x",num_gpu_blocks="None"} 1.0\nsglang:page_size NaN'],
    ["below 0", 'vllm:cache_config_info{block_size="-16",kv_cache_size_tokens="-5"} 1.0\nsglang:page_size -1'],
    ["without end", 'vllm:cache_config_info{kv_cache_size_tokens="1e300"} 1\nsglang:max_total_num_tokens +Inf'],
    ["more hits than queries", "vllm:prefix_cache_queries_total 5\nvllm:prefix_cache_hits_total 6"],
    ["queries alone", "vllm:prefix_cache_queries_total 5"],
    ["a cache that is off", 'vllm:cache_config_info{enable_prefix_caching="False",kv_cache_size_tokens="8960"} 1.0'],
  ])("is unknown where they are %s", (_, exposition) => {
    expect(readCacheMetrics(exposition)).toEqual(UNKNOWN);
  });

  it("is a number of tokens or unknown, whatever comes", () => {
    const line = fc
      .tuple(
        fc.constantFrom(...VLLM.split("\n"), "vllm:cache_config_info{", 'sglang:page_size{a="\\"} ', "sglang:"),
        fc.string(),
      )
      .map(([known, any]) => known + any);
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const { capacityTokens, blockTokens, computedTokens } = readCacheMetrics(lines.join("\n"));
        expect(capacityTokens === null || Number.isSafeInteger(capacityTokens)).toBe(true);
        expect(blockTokens === null || (Number.isInteger(blockTokens) && blockTokens > 0)).toBe(true);
        expect(computedTokens === null || (computedTokens >= 0 && computedTokens < 1e16)).toBe(true);
      }),
    );
  });
});
