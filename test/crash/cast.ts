import {
  type Actor,
  asker,
  batcher,
  Choices,
  type Deeds,
  engine,
  type Forgotten,
  forgetter,
  leaver,
  noDeeds,
  talker,
} from "./actors.js";
import type { Answers } from "./answers.js";

/** Users with conversations. */
export const TALKERS = ["a0", "a1", "a2", "a3"];
/** Users of batches. */
export const BATCHED = ["b0", "b1", "b2", "b3", "b4"];

/** Who asks services that are to be killed, and what came of it. */
export interface Cast {
  readonly actors: readonly Actor[];
  readonly answers: Answers;
  readonly deeds: Deeds;
  readonly forgotten: Forgotten;
}

/** Choices of one of the cast's own. */
export function choicesOf(seed: number, actor: number): Choices {
  return new Choices(seed + 1_000 * (actor + 1));
}

/** Every kind of actor but those that chat; some share a user. */
export function castOf(seed: number, answers: Answers, forgotten: Forgotten): Cast {
  const deeds = noDeeds();
  const own = (actor: number) => choicesOf(seed, actor);
  const actors = [
    ...TALKERS.map((user, n) => talker(answers, deeds, user, own(n))),
    ...TALKERS.slice(2).map((user, n) => asker(answers, user, own(10 + n))),
    asker(answers, "a9", own(15)),
    batcher(answers, deeds, BATCHED, own(20)),
    engine(answers, deeds, own(30)),
    ...["f0", "f1"].map((user, n) => forgetter(answers, deeds, forgotten, user, own(40 + n))),
    ...["l0", "l1"].map((user, n) => leaver(answers, deeds, forgotten, user, own(50 + n))),
  ];
  return { actors, answers, deeds, forgotten };
}
