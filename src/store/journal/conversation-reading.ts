import type { ChatMessage, ConversationId, PromptTokens, Turn } from "../../core/index.js";
import type { StoredHistory } from "../api/store.js";
import { type FoundTurn, type TurnReading, wholeOf } from "./turn-reading.js";

/** The last turns of a conversation that are loaded, and those of its newest epoch: a client may return to a branch that it left. */
const MOST_TURNS_LOADED = 1_000;

/** See `Store.loadConversation`. */
export async function readConversation(reading: TurnReading, id: ConversationId): Promise<Turn[]> {
  const turns: Turn[] = [];
  for await (const page of reading.newestOf(id)) {
    for (const { turn } of page) turns.push(turn);
    const [newest] = turns;
    const oldest = turns.at(-1);
    const goesBack = newest !== undefined && oldest !== undefined && oldest.id <= newest.epoch;
    if (turns.length >= MOST_TURNS_LOADED && goesBack) break;
  }
  const from = Math.min(turns[0]?.epoch ?? 0, turns[MOST_TURNS_LOADED - 1]?.id ?? 0);
  return turns.filter((turn) => turn.id >= from).reverse();
}

/**
 * See `Store.findHistory`. Follows the newest turn's parents, so a branch that was left is not in it; ends at a message that was erased, or
 * a turn that is gone.
 */
export async function readHistory(reading: TurnReading, id: ConversationId): Promise<StoredHistory | null> {
  const newest = await newestTurn(reading, id);
  if (newest === null) return null;
  const path: FoundTurn[] = [];
  let isWhole = true;
  for await (const found of reading.upFrom(newest)) {
    isWhole = found !== null && !found.said.includes(null);
    if (found === null || !isWhole) break;
    path.push(found);
  }
  const said: (readonly ChatMessage[])[] = [];
  const prompts: PromptTokens[] = [];
  let behind: Turn["behind"] = null;
  for (const [at, read] of (await reading.givenOf(path)).entries()) {
    const given = wholeOf(read);
    const turn = path[at]?.turn;
    isWhole &&= given !== null;
    if (given === null || turn === undefined) break;
    said.push(given);
    behind ??= turn.behind;
    // A turn that was only said again was not sent.
    if (turn.promptTokens > 0) prompts.push({ total: turn.promptTokens, computed: turn.computedTokens });
  }
  return {
    head: await reading.head(newest.turn.head),
    newest: said[0]?.length ?? 0,
    hasOwnHead: said.at(-1)?.length === 0,
    messages: said.reverse().flat(),
    isWhole,
    prompts: prompts.reverse(),
    behind,
  };
}

async function newestTurn(reading: TurnReading, id: ConversationId): Promise<FoundTurn | null> {
  // Mostly it is the first, and of a window all that is read.
  for await (const [newest] of reading.newestOf(id, 1)) if (newest !== undefined) return newest;
  return null;
}
