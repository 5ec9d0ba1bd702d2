/** What an answer's body needs of the call that it belongs to. */
export interface AnswerBodyParts {
  /** Milliseconds that may pass while bytes are waited for. A reader that does not ask for any is not the engine's fault. */
  readonly idleMs: number;
  /** Called when that is over. */
  readonly onStalled: () => void;
  /** What is thrown in place of the connection's own error. */
  readonly errorFor: (error: unknown) => Error;
  /** Called once it is over, however it ended. */
  readonly release: () => void;
  /** Closes the connection. */
  readonly destroy: () => void;
}

/** An answer's bytes, as they come. No generator: ended before its first byte was read, it must close the connection all the same. */
export class AnswerBody implements AsyncIterableIterator<Uint8Array> {
  #first: IteratorResult<Uint8Array> | null;
  #isOver = false;

  constructor(
    first: IteratorResult<Uint8Array>,
    private readonly rest: AsyncIterator<Uint8Array>,
    private readonly parts: AnswerBodyParts,
  ) {
    this.#first = first;
    if (first.done === true) this.#end();
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isOver) return { done: true, value: undefined };
    const first = this.#first;
    this.#first = null;
    if (first !== null) return first;
    const timer = setTimeout(this.parts.onStalled, this.parts.idleMs);
    try {
      const read = await this.rest.next();
      if (read.done === true) this.#end();
      return read;
    } catch (error) {
      this.#end();
      throw this.parts.errorFor(error);
    } finally {
      clearTimeout(timer);
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#isOver) {
      this.#end();
      this.parts.destroy();
    }
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#isOver = true;
    this.parts.release();
  }
}
