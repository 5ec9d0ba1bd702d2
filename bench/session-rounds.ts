/** A turn that is due: which session asks, and which of its turns it is, from 0. */
export interface DueTurn {
  readonly session: number;
  readonly turn: number;
}

/**
 * The turns of many sessions in the order in which they reach an engine, so many sessions open at a time: every open session asks one turn,
 * then each its next. When a session has asked its last turn, the next one that waits takes its place.
 *
 * @param lengths turns of each session, first to last
 * @param open sessions at a time, at least 1
 */
export function* sessionRounds(lengths: readonly number[], open: number): Generator<DueTurn, void, undefined> {
  const waiting = lengths.keys();
  let asking: DueTurn[] = [];
  for (;;) {
    while (asking.length < open) {
      const next = waiting.next();
      if (next.done) break;
      if ((lengths[next.value] ?? 0) > 0) asking.push({ session: next.value, turn: 0 });
    }
    if (asking.length === 0) return;
    yield* asking;
    asking = asking
      .map(({ session, turn }) => ({ session, turn: turn + 1 }))
      .filter(({ session, turn }) => turn < (lengths[session] ?? 0));
  }
}
