import { type LinkedSignal, linkedSignal } from "../base/linked-signal.js";

/**
 * A call to an engine that goes out while its prompt is still being stored: the store's time passes with the engine's. Its answer is
 * nobody's before the prompt is stored (docs/internals/architecture.md, "Promises"); where that fails the call is given up.
 */
export class CallAhead<T> {
  #answer: Promise<T> | null = null;
  #call: LinkedSignal | null = null;
  #isGivenUp = false;

  /** @param client aborts when the client is gone: that ends the call, too */
  constructor(private readonly client: AbortSignal) {}

  /** Begins the call, not after {@link giveUp}. One that was begun before is ended: its prompt was planned again. */
  begin(send: (signal: AbortSignal) => Promise<T>): void {
    if (this.client.aborted || this.#isGivenUp) return;
    this.#end();
    this.#call = linkedSignal(this.client);
    this.#answer = send(this.#call.signal);
    // Whoever asks for the answer is told; after `giveUp` nobody does.
    this.#answer.catch(() => {});
  }

  /** Null where it was not begun. */
  get answer(): Promise<T> | null {
    return this.#answer;
  }

  /** Ends the call where it was begun, and lets none begin. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#end();
  }

  #end(): void {
    this.#call?.abort();
    this.#call?.release();
  }
}
