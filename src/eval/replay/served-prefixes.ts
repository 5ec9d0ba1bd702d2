interface Step {
  readonly next: Map<number, Step>;
}

/** Block sequences that were served: an endless cache that is exact on blocks. Knows nothing of the context index, which it measures. */
export class ServedPrefixes {
  readonly #root: Step = { next: new Map() };

  /** How many blocks from the front some earlier sequence began with; takes the sequence in. */
  take(sequence: readonly number[]): number {
    let at = this.#root;
    let held = 0;
    let isHeld = true;
    for (const block of sequence) {
      const known = at.next.get(block);
      isHeld &&= known !== undefined;
      if (isHeld) held++;
      const step: Step = known ?? { next: new Map() };
      at.next.set(block, step);
      at = step;
    }
    return held;
  }
}
