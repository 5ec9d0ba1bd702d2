import type { Label } from "../text/ids.js";
import { type ComparedText, comparedText } from "../text/sentences.js";

/** Blocks' texts in the form in which they are compared, each made when it is first asked for. Not stored; bounded by the register. */
export class ComparedTexts {
  readonly #texts = new Map<Label, ComparedText>();
  #length = 0;

  /** Characters of all of them. */
  get length(): number {
    return this.#length;
  }

  /** The same for a label whatever is asked later: a block's text never changes. */
  of(label: Label, text: string): ComparedText {
    let compared = this.#texts.get(label);
    if (compared === undefined) {
      compared = comparedText(text);
      this.#texts.set(label, compared);
      this.#length += lengthOf(compared);
    }
    return compared;
  }

  drop(label: Label): void {
    const compared = this.#texts.get(label);
    if (compared === undefined) return;
    this.#texts.delete(label);
    this.#length -= lengthOf(compared);
  }
}

function lengthOf({ runs }: ComparedText): number {
  return runs.reduce((sum, run) => sum + run.length, 0);
}
