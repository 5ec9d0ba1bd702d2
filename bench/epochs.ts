/**
 * `npm run bench:epochs`: forms of epochs, compared on labels and token counts without composing (docs/internals/algorithms.md, "Epochs").
 * Recorded real Mem0 searches of six LoCoMo conversations, first 120 questions each, answers of 120 tokens, an endless cache. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Tokens to prefill of memories in the last message ÷ those of each form, at the ratio at which its prompts are twice, or three times, as
 * long as the client's own.
 */
import { countO200k } from "../src/cli/o200k.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { mean } from "../test/eval/replay/retention-costs.js";
import { neededData } from "./recorded-data.js";

/** Tokens around texts: a label and line break, a bullet, a message's template, instructions, tags with a ranking. */
const [LABEL, BULLET, TEMPLATE, INSTRUCTIONS, FRAME] = [5, 2, 4, 30, 40];
const ANSWER = 120 + TEMPLATE;

interface Form {
  readonly name: string;
  /** Most tokens carried in front, as a share of the retrieved; null: memories stand in the question. */
  readonly carried: number | null;
  /** What the ratio bounds. */
  readonly over: "epoch" | "conversation";
}

const FORMS: readonly Form[] = [
  { name: "epochs only", carried: null, over: "epoch" },
  { name: "memories in front, none carried", carried: 0, over: "epoch" },
  { name: "carried up to half of the retrieved", carried: 0.5, over: "epoch" },
  { name: "carried up to the retrieved", carried: 1, over: "epoch" },
  { name: "carried up to twice the retrieved", carried: 2, over: "epoch" },
  { name: "averages over the conversation in place of the epoch", carried: 1, over: "conversation" },
];

const data = neededData();
const conversations = RECORDED_CONVERSATIONS.map((name) => {
  const { memories, questions } = readRecordedTrace(data, name);
  const asked = questions.slice(0, 120).map(({ question, retrieved }, turn) => {
    return { tokens: countO200k(`${turn}. ${question}`) + TEMPLATE, retrieved };
  });
  return { memories: memories.map(({ memory }) => countO200k(memory)), asked };
});

/** Fronts of epochs so far, as a tree of blocks. */
interface Front {
  readonly next: Map<number, Front>;
}

/** An epoch so far; `size`: tokens of its last prompt. */
interface Epoch {
  readonly given: ReadonlySet<number>;
  readonly size: number;
  readonly sent: number;
  readonly prompts: number;
}

/** The path with most saved, less a tenth of what is carried, within the allowance. */
function bestPath(root: Front, wanted: ReadonlySet<number>, tokensOf: (block: number) => number, allowance: number) {
  let best: { value: number; path: readonly number[] } = { value: 0, path: [] };
  const walk = (front: Front, path: readonly number[], saved: number, carried: number) => {
    for (const [block, next] of front.next) {
      const isWanted = wanted.has(block);
      const [saves, carries] = [saved + (isWanted ? tokensOf(block) : 0), carried + (isWanted ? 0 : tokensOf(block))];
      if (carries > allowance) continue;
      const to = [...path, block];
      const value = saves - carries / 10;
      if (isWanted && value > best.value) best = { value, path: to };
      walk(next, to, saves, carries);
    }
  };
  walk(root, [], 0, 0);
  return best.path;
}

function simulate(
  { memories, asked }: (typeof conversations)[number],
  k: number,
  window: number,
  form: Form,
  ratio: number,
) {
  const tokensOf = (block: number) => (memories[block] ?? 0) + LABEL;
  const sum = (blocks: readonly number[], of: (block: number) => number) =>
    blocks.reduce((to, each) => to + of(each), 0);
  const root: Front = { next: new Map() };
  let epoch: Epoch | null = null;
  const all = { sent: 0, exact: 0, hand: 0, prefilled: 0, byHand: 0 };
  for (const [turn, { tokens: question, retrieved }] of asked.entries()) {
    const wanted = retrieved.slice(0, k);
    let said = 0;
    for (let back = 1; back < Math.min(window, 2 * turn + 1); back++)
      said += back % 2 === 1 ? ANSWER : (asked[turn - back / 2]?.tokens ?? 0);
    const isCut = 2 * turn + 1 > window;
    const listed = sum(wanted, (block) => (memories[block] ?? 0) + BULLET) + 5;
    all.hand += INSTRUCTIONS + said + listed + question;
    all.byHand += listed + question + (isCut ? said : turn === 0 ? 0 : ANSWER + (asked[turn - 1]?.tokens ?? 0));
    const exact = INSTRUCTIONS + said + sum(wanted, tokensOf) + question + FRAME;
    all.exact += exact;
    const before = epoch as Epoch | null;
    const fresh = wanted.filter((block) => !before?.given.has(block));
    const added = question + FRAME + sum(fresh, tokensOf);
    const next: number = (before?.size ?? 0) + ANSWER + added;
    const within: number = form.over === "epoch" ? ratio * exact * ((before?.prompts ?? 0) + 1) : ratio * all.exact;
    const sent = form.over === "epoch" ? (before?.sent ?? 0) : all.sent;
    if (before !== null && (!isCut || sent + next <= within)) {
      const given: ReadonlySet<number> = new Set([...before.given, ...fresh]);
      epoch = { given, size: next, sent: before.sent + next, prompts: before.prompts + 1 };
      all.prefilled += added;
      all.sent += next;
      continue;
    }
    const allowance = (form.carried ?? 0) * sum(wanted, tokensOf);
    const path = form.carried === null ? [] : bestPath(root, new Set(wanted), tokensOf, allowance);
    const front = [...path, ...wanted.filter((block) => !path.includes(block))];
    let [at, cached]: [Front, number | null] = [root, 0];
    let hit = 0;
    for (const block of front) {
      const known = at.next.get(block);
      if (known === undefined) cached = null;
      else if (cached !== null) hit += tokensOf(block);
      const to = known ?? { next: new Map() };
      at.next.set(block, to);
      at = to;
    }
    const size = INSTRUCTIONS + said + sum(front, tokensOf) + question + FRAME;
    epoch = { given: new Set(front), size, sent: size, prompts: 1 };
    all.prefilled += size - INSTRUCTIONS - (form.carried === null ? 0 : hit);
    all.sent += size;
  }
  return { fewer: all.byHand / all.prefilled, size: all.sent / all.hand };
}

/** How much a form spares where its prompts are so many times as long as the client's, by bisection of its ratio. */
function fewerAt(size: number, k: number, window: number, form: Form): number {
  let [low, high, fewer] = [1, 8, 1];
  for (let step = 0; step < 18; step++) {
    const ratio = (low + high) / 2;
    const runs = conversations.map((conversation) => simulate(conversation, k, window, form, ratio));
    if (mean(runs.map((run) => run.size)) > size) high = ratio;
    else [low, fewer] = [ratio, mean(runs.map((run) => run.fewer))];
  }
  return fewer;
}

const CELLS = [20, 100].flatMap((k) => [8, 20].map((window) => ({ k, window })));
console.log(`| ${["", ...CELLS.map(({ k, window }) => `k=${k}, ${window}`)].join(" | ")} |`);
console.log(`| --- |${CELLS.map(() => " --: |").join("")}`);
for (const form of FORMS) {
  const cells = CELLS.map(({ k, window }) =>
    [2, 3].map((size) => fewerAt(size, k, window, form).toFixed(2)).join(", "),
  );
  console.log(`| ${[form.name, ...cells].join(" | ")} |`);
}
