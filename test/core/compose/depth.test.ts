import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_DEPTH, type Depth, probeDepths } from "../../../src/core/compose/depth.js";
import type { PromptDraft } from "../../../src/core/compose/draft.js";
import { ORDERING_POLICIES, POLICY_NAMES } from "../../../src/core/compose/policies.js";
import { RETENTION_NAMES } from "../../../src/core/conversation/conversation.js";
import { blockBounds } from "../../../src/core/index.js";
import { carryOver } from "../../../src/core/ordering/carry-over.js";
import { messageText } from "../../../src/core/text/message.js";
import { expectPromises } from "../prompt/prompt-promises.js";
import {
  anyForm,
  assistant,
  type ComposeOptions,
  memories,
  memory,
  toolExchange,
  UserScope,
  user,
} from "./scope-fixture.js";

const anySettings = fc.record({
  firstBlocks: fc.integer({ min: 1, max: 30 }),
  growth: fc.double({ min: 1.01, max: 10, noNaN: true }),
  entropyNats: fc.constant(1),
  maxProbes: fc.integer({ min: 1, max: 8 }),
  timeLimitMs: fc.constant(1_000),
});

describe("the depths to try", () => {
  it("are few, rise, and never hold all", () => {
    fc.assert(
      fc.property(fc.nat(120), anySettings, (blocks, settings) => {
        const depths = probeDepths(blocks, settings);
        expect(depths.length).toBeLessThanOrEqual(settings.maxProbes);
        for (const [at, depth] of depths.entries()) {
          expect(depth).toBeGreaterThan(depths[at - 1] ?? 0);
          expect(depth).toBeLessThan(blocks);
        }
        expect(depths[0]).toBe(settings.firstBlocks < blocks ? settings.firstBlocks : undefined);
      }),
    );
  });
});

function depthOf(blocks: number, after: PromptDraft | null = null): Depth {
  return { blocks, after: after?.selection.ordering ?? null, choice: { outcome: "sure", probes: [] } };
}

/** Everything of a prompt up to where its last section's blocks end. */
function upToBlocks({ prompt }: Pick<PromptDraft, "prompt">): string {
  const last = prompt.messages.at(-1);
  const text = last === undefined ? "" : messageText(last);
  return JSON.stringify(prompt.messages.slice(0, -1)) + text.slice(0, blockBounds(text).at(-1) ?? 0);
}

const anyTurn = fc.record({
  retrieved: fc.uniqueArray(
    fc.record({ id: fc.nat(14).map((n) => `m${n}`), version: fc.nat(2), shares: fc.boolean() }),
    { selector: ({ id }) => id, maxLength: 12 },
  ),
  first: fc.integer({ min: 1, max: 4 }),
  /** After how many tries the engine is sure. */
  sureAfter: fc.nat(4),
  endsWithTool: fc.boolean(),
});

describe("prompts of one request at growing depths", () => {
  it("each extend the one before, with any policy and retention, in conversations and alone; and what is composed is what was tried", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...POLICY_NAMES),
        fc.constantFrom(...RETENTION_NAMES),
        fc.option(fc.constant("c"), { nil: undefined }),
        fc.option(fc.integer({ min: 1, max: 300 }), { nil: undefined }),
        fc.option(fc.double({ min: 1, max: 4, noNaN: true }), { nil: undefined }),
        anyForm,
        fc.array(anyTurn, { minLength: 1, maxLength: 6 }),
        (policy, retention, conversation, memoryBudgetTokens, memoryBudgetRatio, form, turns) => {
          const scope = new UserScope();
          const history = [user("Hello"), assistant("Hi!")];
          for (const [at, { retrieved, first, sureAfter, endsWithTool }] of turns.entries()) {
            const asked = retrieved.map(({ id, version, shares }) =>
              memory(id, shares ? `Shared ${version}.` : `The ${id} is in version ${version}.`),
            );
            const asking = endsWithTool ? [user(`Q${at}`), ...toolExchange(`T${at}`)] : [user(`Q${at}`)];
            const messages = conversation === undefined ? asking : [...history, ...asking];
            const options: ComposeOptions = {
              ...form,
              policy: ORDERING_POLICIES[policy],
              retention,
              ...(conversation === undefined ? {} : { conversation }),
              ...(memoryBudgetTokens === undefined ? {} : { memoryBudgetTokens }),
              ...(memoryBudgetRatio === undefined ? {} : { memoryBudgetRatio }),
            };
            const whole = scope.draft(messages, asked, options);
            const settings = { ...DEFAULT_DEPTH, firstBlocks: first };
            let tried: PromptDraft | null = null;
            let blocks = whole.selection.fresh.length;
            for (const [n, depth] of probeDepths(whole.selection.fresh.length, settings).entries()) {
              const next: PromptDraft = scope.draft(messages, asked, { ...options, depth: depthOf(depth, tried) });
              const given = next.selection.request.retrieved.length;
              expect(given).toBe(depth);
              if (tried !== null) expect(upToBlocks(next).startsWith(upToBlocks(tried))).toBe(true);
              tried = next;
              if (n === sureAfter) {
                blocks = depth;
                break;
              }
            }
            const composed = scope.compose(messages, asked, { ...options, depth: depthOf(blocks, tried) });
            if (tried !== null && blocks === tried.selection.request.retrieved.length) {
              expect(composed.messages).toEqual(tried.prompt.messages);
            } else if (tried !== null) {
              const last = composed.messages.at(-1);
              const text = last === undefined ? "" : messageText(last);
              expect((JSON.stringify(composed.messages.slice(0, -1)) + text).startsWith(upToBlocks(tried))).toBe(true);
            }
            const held = composed.warnings.find(({ code }) => code === "memory_held_back")?.memoryIds ?? [];
            const carried = composed.memories.filter(({ placement }) => placement === "carried_over");
            if (carried.length === 0) {
              expectPromises(
                composed,
                asked.filter(({ id }) => !held.includes(id)),
              );
            }
            expect(scope.state.bankedTokens).toBeGreaterThanOrEqual(0);
            expect(composed.plan.depth?.retrieved).toBe(whole.selection.fresh.length);
            expect(composed.plan.depth?.given).toBeGreaterThanOrEqual(Math.min(blocks, whole.selection.fresh.length));
            history.push(...asking, assistant(`A${at}`));
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("a prompt with a depth", () => {
  it("is ordered afresh where what was tried carries more than is left in the memory bank by now", () => {
    const scope = new UserScope();
    const ask = [user("Q")];
    const shared = { policy: carryOver, memoryBudgetRatio: 1 };
    scope.compose(ask, memories("a", "b", "c", "d", "e"), { ...shared, memoryBudgetRatio: 1.3 });
    const asked = memories("a", "c", "d", "e");
    const tried = scope.draft(ask, asked, { ...shared, depth: depthOf(2) });
    expect(tried.selection.ordering.carried.size).toBeGreaterThan(0);
    const next = { ...shared, depth: depthOf(4, tried) };
    expect(scope.draft(ask, asked, next).selection.ordering.carried.size).toBe(1);
    // Another request of the scope, by another process.
    scope.compose(ask, memories("a", "c"), shared);
    const composed = scope.compose(ask, asked, next);
    expect(composed.memories.map(({ placement }) => placement)).not.toContain("carried_over");
    expect(scope.state.bankedTokens).toBeGreaterThanOrEqual(0);
  });
});
