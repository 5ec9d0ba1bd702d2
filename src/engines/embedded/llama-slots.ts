import type { LlamaContextSequence, Token } from "node-llama-cpp";
import { chooseSlot } from "../../core/index.js";

/** A slot that a request has. */
export interface TakenSlot {
  readonly sequence: LlamaContextSequence;
  /** Tokens of the prompt that need not be computed: they are in the slot's KV cache. Always less than the prompt has. */
  readonly cachedTokens: number;
  /** Gives the slot back, with what it holds. */
  release(): void;
  /** Gives the slot back empty: what it holds cannot be trusted. */
  discard(): Promise<void>;
}

interface Slot {
  readonly sequence: LlamaContextSequence;
  salt: string | undefined;
  lastUsed: number;
  free: boolean;
}

/** The slots of one engine: each holds the tokens of the last prompt and answer that it was used for. */
export class LlamaSlots {
  readonly #slots: readonly Slot[];
  #uses = 0;

  constructor(sequences: readonly LlamaContextSequence[]) {
    this.#slots = sequences.map((sequence) => ({ sequence, salt: undefined, lastUsed: 0, free: true }));
  }

  /** Takes the slot that suits a prompt best, and cuts it to what they share. Throws where none is free: the caller counts turns. */
  async take(prompt: readonly Token[], salt: string | undefined): Promise<TakenSlot> {
    // The last token is always computed: what comes after it is the answer.
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
      // A slot that changes hands is emptied, so that a common beginning of two salts is computed twice.
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
