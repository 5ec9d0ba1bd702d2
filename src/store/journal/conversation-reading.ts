import type { ConversationId, Turn } from "../../core/index.js";
import type { StoredHistory } from "../api/store.js";
import type { SaidPath } from "./known-histories.js";
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

/** What is stored of a conversation's history. */
export interface ReadHistory {
  readonly history: StoredHistory;
  /** Null where a part of it is gone. */
  readonly path: SaidPath | null;
}

/**
 * See `Store.findHistory`. Follows the newest turn's parents, so a branch that was left is not in it; ends at a message that was erased, or
 * a turn that is gone.
 */
export async function readHistory(reading: TurnReading, id: ConversationId): Promise<ReadHistory | null> {
  const newest = await newestTurn(reading, id);
  if (newest === null) return null;
  const found: FoundTurn[] = [];
  let isWhole = true;
  for await (const one of reading.upFrom(newest)) {
    isWhole = one !== null && !one.said.includes(null);
    if (one === null || !isWhole) break;
    found.push(one);
  }
  const [all, head] = await Promise.all([reading.givenOf(found), reading.head(newest.turn.head)]);
  const turns: SaidPath["turns"][number][] = [];
  for (const [at, read] of all.entries()) {
    const given = wholeOf(read);
    const turn = found[at]?.turn;
    isWhole &&= given !== null;
    if (given === null || turn === undefined) break;
    turns.push({ turn, given });
  }
  turns.reverse();
  const history = historyOf({ head, turns }, isWhole);
  return { history, path: isWhole && head !== null ? { head, turns } : null };
}

/** @param isWhole whether the turns go back to their epoch's first */
export function historyOf(
  { head, turns }: Omit<SaidPath, "head"> & { readonly head: SaidPath["head"] | null },
  isWhole = true,
): StoredHistory {
  // A turn that was only said again was not sent.
  const sent = turns.filter(({ turn }) => turn.promptTokens > 0);
  return {
    head,
    newest: turns.at(-1)?.given.length ?? 0,
    hasOwnHead: turns[0]?.given.length === 0,
    messages: turns.flatMap(({ given }) => given),
    isWhole,
    prompts: sent.map(({ turn }) => ({ total: turn.promptTokens, computed: turn.computedTokens })),
    behind: turns.findLast(({ turn }) => turn.behind !== null)?.turn.behind ?? null,
  };
}

async function newestTurn(reading: TurnReading, id: ConversationId): Promise<FoundTurn | null> {
  // Mostly it is the first, and of a window all that is read.
  for await (const [newest] of reading.newestOf(id, 1)) if (newest !== undefined) return newest;
  return null;
}
