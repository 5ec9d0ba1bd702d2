import type { LlamaContextSequence, Token } from "node-llama-cpp";
import { chooseSlot } from "../../core/index.js";

/** A slot taken by a request. */
export interface TakenSlot {
  readonly sequence: LlamaContextSequence;
  /** Prompt tokens in the slot's KV cache; always fewer than the prompt has. */
  readonly cachedTokens: number;
  /** Returns the slot with its cache. */
  release(): void;
  /** Returns the slot empty, where its cache may be wrong. */
  discard(): Promise<void>;
}

interface Slot {
  readonly sequence: LlamaContextSequence;
  salt: string | undefined;
  lastUsed: number;
  free: boolean;
}

/** The slots of one engine: each caches the tokens of its last prompt and answer. */
export class LlamaSlots {
  readonly #slots: readonly Slot[];
  #uses = 0;

  constructor(sequences: readonly LlamaContextSequence[]) {
    this.#slots = sequences.map((sequence) => ({ sequence, salt: undefined, lastUsed: 0, free: true }));
  }

  /** Takes the best slot for a prompt, and truncates its cache to the shared prefix. Throws where none is free: the queue counts them. */
  async take(prompt: readonly Token[], salt: string | undefined): Promise<TakenSlot> {
    // The last token is always computed, for its logits.
    const reusable = prompt.slice(0, -1);
    const free = this.#slots.filter((slot) => slot.free);
    const choice = chooseSlot(
      free.map(({ sequence, salt, lastUsed }) => {
        const { firstDifferentIndex: shared } = sequence.compareContextTokens(reusable);
        return { salt, tokens: sequence.nextTokenIndex, shared, lastUsed };
      }),
      salt,
    );
    const slot = choice === undefined ? undefined : free[choice];
    if (slot === undefined) throw new RangeError("no slot is free");
    slot.free = false;
    slot.lastUsed = ++this.#uses;
    const { sequence } = slot;
    const taken: Omit<TakenSlot, "cachedTokens"> = {
      sequence,
      release: () => {
        slot.free = true;
      },
      discard: async () => {
        try {
          await sequence.clearHistory();
        } finally {
          slot.free = true;
        }
      },
    };
    try {
      // A slot that changes its salt is cleared: salts share no prefix.
      if (slot.salt !== salt) await sequence.clearHistory();
      slot.salt = salt;
      await sequence.adaptStateToTokens(reusable, false);
    } catch (error) {
      await taken.discard();
      throw error;
    }
    return { ...taken, cachedTokens: sequence.nextTokenIndex };
  }
}
