import { type LinkedSignal, linkedSignal } from "../base/linked-signal.js";

/**
 * A call to an engine that goes out while its prompt is still being stored: the store's time passes with the engine's. Its answer is
 * nobody's before the prompt is stored (ARCHITECTURE.md, "durable"); where that fails the call is given up.
 */
export class SpeculativeCall<T> {
  #answer: Promise<T> | null = null;
  #call: LinkedSignal | null = null;
  #isCancelled = false;

  /** @param client aborts when the client is gone: that ends the call, too */
  constructor(private readonly client: AbortSignal) {}

  /** Begins the call, not after {@link cancel}. One that was begun before is ended: its prompt was planned again. */
  start(send: (signal: AbortSignal) => Promise<T>): void {
    if (this.client.aborted || this.#isCancelled) return;
    this.#end();
    this.#call = linkedSignal(this.client);
    this.#answer = send(this.#call.signal);
    // Whoever asks for the answer is told; after `cancel` nobody does.
    this.#answer.catch(() => {});
  }

  /** Null where it was not begun. */
  get answer(): Promise<T> | null {
    return this.#answer;
  }

  /** Ends the call where it was begun, and lets none begin. */
  cancel(): void {
    this.#isCancelled = true;
    this.#end();
  }

  #end(): void {
    this.#call?.abort();
    this.#call?.release();
  }
}
