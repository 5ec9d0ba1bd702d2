/* tools: they come before a prompt's messages. Enters: a request's tools as JSON texts, those of the conversation. Leaves: the texts to send. */

import { groupBy } from "../text/collections.js";
import { type Digest, digestOf } from "../text/ids.js";
import { canonicalJsonText, type JsonPart, parsedJson, partsOf, pastBlanks, record, text } from "../text/json.js";
import { CACHE_MARKS } from "../text/message.js";

/** A tool that a conversation has sent. */
export interface KnownTool {
  /** JSON as it was first sent, without cache marks. */
  readonly json: string;
  /** Whether the newest prompt has it. */
  readonly isSent: boolean;
}

/** Names of tools. All empty: their order or form changed. */
export interface ToolChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

export interface SentTools {
  /** One JSON text for each tool, with the caller's cache mark. */
  readonly texts: readonly string[];
  /** Null: there are no tools. */
  readonly digest: Digest | null;
  /** What the conversation knows after this prompt. */
  readonly known: readonly KnownTool[];
  /** Since the newest prompt. */
  readonly changes: ToolChanges;
}

/** Characters of the tools that a conversation keeps. Above them, tools of earlier prompts are dropped; then tools are sent as they come. */
const MOST_CHARACTERS = 1_000_000;
/** Names in {@link ToolChanges}, of each kind, and the length of one. */
const MOST_NAMES = 20;
const MOST_NAME_CHARACTERS = 128;

/**
 * Keeps a conversation's tools in the order and the bytes that it sent first; new tools follow. The caller's last cache mark moves to the last
 * tool. Tools are equal if their JSON is, apart from the order of keys and cache marks.
 *
 * @param isStable false: the tools are sent as they come
 */
export function toolsToSend(given: readonly string[], known: readonly KnownTool[], isStable: boolean): SentTools {
  const marked = given.map(withoutMark);
  const own = marked.map(({ json }) => json);
  const knownAt = matched(own, known);
  const matches = new Set(knownAt);
  const added = own.filter((_, at) => knownAt[at] === undefined);
  const isSame = added.length === 0 && known.every(({ isSent }, at) => isSent === matches.has(at));
  const kept = known.map(({ json }, at) => ({ json, isSent: matches.has(at) }));
  // The same list where nothing changed, so that it is stored once.
  const all = isSame ? known : bounded([...kept, ...added.map((json) => ({ json, isSent: true }))]);
  const isKept = isStable && all.length > 0;
  const sent = isKept ? all.filter(({ isSent }) => isSent).map(({ json }) => json) : own;
  const mark = marked.findLast((tool) => tool.mark !== null)?.mark ?? null;
  return {
    texts: sent.every((json, at) => json === own[at])
      ? given
      : sent.map((json, at) => (mark !== null && at === sent.length - 1 ? withMark(json, mark) : json)),
    digest: sent.length === 0 ? null : digestOf(JSON.stringify(sent)),
    known: isKept || isSame ? all : bounded(own.map((json) => ({ json, isSent: true }))),
    changes: changesOf(
      known.filter(({ isSent }, at) => isSent && !matches.has(at)).map(({ json }) => json),
      own.filter((_, at) => known[knownAt[at] ?? -1]?.isSent !== true),
    ),
  };
}

/** For each given tool the place of an equal known one. */
function matched(given: readonly string[], known: readonly KnownTool[]): readonly (number | undefined)[] {
  const places: (number | undefined)[] = given.map(() => undefined);
  const open = new Set(known.keys());
  // Most are equal byte for byte.
  for (const keyOf of [(json: string) => json, canonicalJsonText]) {
    if (!places.includes(undefined) || open.size === 0) break;
    const waiting = groupBy([...open], (at) => keyOf(known[at]?.json ?? ""));
    for (const [at, json] of given.entries()) {
      const place = places[at] === undefined ? waiting.get(keyOf(json))?.shift() : undefined;
      if (place === undefined) continue;
      places[at] = place;
      open.delete(place);
    }
  }
  return places;
}

function bounded(tools: readonly KnownTool[]): readonly KnownTool[] {
  const fits = (some: readonly KnownTool[]) =>
    some.reduce((sum, { json }) => sum + json.length, 0) <= MOST_CHARACTERS ? some : null;
  return fits(tools) ?? fits(tools.filter(({ isSent }) => isSent)) ?? [];
}

function changesOf(gone: readonly string[], come: readonly string[]): ToolChanges {
  const [before, now] = [gone.map(nameOf), come.map(nameOf)];
  const names = (some: readonly string[]) => [...new Set(some)].slice(0, MOST_NAMES);
  return {
    added: names(now.filter((name) => !before.includes(name))),
    removed: names(before.filter((name) => !now.includes(name))),
    changed: names(now.filter((name) => before.includes(name))),
  };
}

/** In the forms of chat completions, Messages and Responses. */
function nameOf(json: string): string {
  const tool = record(parsedJson(json));
  const named = [record(tool["function"])["name"], tool["name"], tool["server_label"], tool["type"]].map(text);
  return (named.find((name) => name !== "") ?? "").slice(0, MOST_NAME_CHARACTERS);
}

interface Mark {
  /** The field as the caller wrote it. */
  readonly field: string;
  /** Whether it is in the tool's `function`, as LiteLLM takes it too. */
  readonly isInFunction: boolean;
}

interface MarkedTool {
  readonly json: string;
  readonly mark: Mark | null;
}

function withoutMark(json: string): MarkedTool {
  if (!CACHE_MARKS.some((name) => json.includes(name))) return { json, mark: null };
  for (const isInFunction of [false, true]) {
    const parts = isInFunction ? functionParts(json) : toolParts(json);
    const at = parts.findIndex(({ key }) => CACHE_MARKS.includes(String(key)));
    const part = parts[at];
    if (part === undefined) continue;
    const from = parts[at - 1]?.to ?? part.start;
    const to = at === 0 ? (parts[1]?.start ?? part.to) : part.to;
    const rest = withoutMark(json.slice(0, from) + json.slice(to));
    return { json: rest.json, mark: { field: json.slice(part.start, part.to), isInFunction } };
  }
  return { json, mark: null };
}

function withMark(json: string, { field, isInFunction }: Mark): string {
  const last = (isInFunction ? functionParts(json) : []).at(-1) ?? toolParts(json).at(-1);
  return last === undefined ? json : `${json.slice(0, last.to)},${field}${json.slice(last.to)}`;
}

function toolParts(json: string): readonly JsonPart[] {
  const from = pastBlanks(json, 0);
  return json[from] === "{" ? [...partsOf(json, from)] : [];
}

function functionParts(json: string): readonly JsonPart[] {
  const own = toolParts(json).find(({ key }) => key === "function");
  return own !== undefined && json[own.from] === "{" ? [...partsOf(json, own.from)] : [];
}
