/*
 * What Anthropic's page on prompt caching says of `cache_control`, as the API enforces it: an error 400 for what is forbidden.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */

type Fields = Readonly<Record<string, unknown>>;

/** A mark, in the order in which the prompt is built: tools, system, messages. */
interface PlacedMark {
  readonly at: string;
  readonly hour: boolean;
}

const UNMARKABLE = new Set(["thinking", "redacted_thinking"]);
const LIFETIMES = new Set<unknown>(["5m", "1h"]);

/** Why the API refuses a request for its marks; null where it takes them. */
export function markProblem(body: unknown): string | null {
  const { tools, system, messages, cache_control: automatic } = fieldsOf(body);
  const problems: string[] = [];
  const marks: PlacedMark[] = [];
  const take = (mark: unknown, at: string) => {
    const { type, ttl = "5m" } = fieldsOf(mark);
    if (type !== "ephemeral") problems.push(`${at}: only the type 'ephemeral' is supported`);
    if (!LIFETIMES.has(ttl ?? "5m")) problems.push(`${at}.ttl: Input should be '5m' or '1h'`);
    marks.push({ at, hour: ttl === "1h" });
  };
  /** The block, and what stands inside of it: results, documents. */
  const read = (block: unknown, at: string): void => {
    const { type, text, content, source, cache_control: mark } = fieldsOf(block);
    for (const inner of [content, fieldsOf(source)["content"]])
      for (const [n, part] of listOf(inner).entries()) read(part, `${at}.content.${n}`);
    if (mark == null) return;
    if (type === "text" && String(text).trim() === "")
      problems.push(`${at}: cache_control cannot be set for empty text`);
    if (UNMARKABLE.has(String(type))) problems.push(`${at}: cache_control cannot be set for ${String(type)} blocks`);
    take(mark, at);
  };
  const blocks: (readonly [unknown, string])[] = [
    ...listOf(tools).map((tool, n) => [tool, `tools.${n}`] as const),
    ...listOf(system).map((block, n) => [block, `system.${n}`] as const),
    ...listOf(messages).flatMap((message, n) =>
      listOf(fieldsOf(message)["content"]).map((block, at) => [block, `messages.${n}.content.${at}`] as const),
    ),
  ];
  for (const [block, at] of blocks) read(block, at);
  if (automatic != null) {
    const last = fieldsOf(blocks.findLast(([block]) => isMarkable(block))?.[0])["cache_control"];
    const { ttl = "5m" } = fieldsOf(automatic);
    if (marks.length >= 4) problems.push("cache_control: no slots left for automatic caching");
    if (last == null) take(automatic, "cache_control");
    else if ((fieldsOf(last)["ttl"] ?? "5m") !== ttl) problems.push("cache_control: the last block has another ttl");
  }
  if (marks.length > 4)
    problems.push(`A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`);
  const shorter = marks.findIndex(({ hour }) => !hour);
  const late = shorter < 0 ? undefined : marks.slice(shorter).find(({ hour }) => hour);
  if (late !== undefined) {
    problems.push(`${late.at}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' one`);
  }
  return problems[0] ?? null;
}

function isMarkable(block: unknown): boolean {
  const { type, text } = fieldsOf(block);
  return !UNMARKABLE.has(String(type)) && !(type === "text" && String(text).trim() === "");
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
