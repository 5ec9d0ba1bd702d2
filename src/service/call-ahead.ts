import { linkedSignal } from "./linked-signal.js";

/**
 * A call to an engine that goes out while its prompt is still being stored: the store's time passes with the engine's. Its answer is
 * nobody's before the prompt is stored (ARCHITECTURE.md, "durable"); where that fails the call is given up.
 */
export class CallAhead<T> {
  #answer: Promise<T> | null = null;
  readonly #stop = new AbortController();

  /** @param client aborts when the client is gone: that ends the call, too */
  constructor(private readonly client: AbortSignal) {}

  /** Begins the call, once; not after {@link giveUp}. */
  begin(send: (signal: AbortSignal) => Promise<T>): void {
    if (this.#answer !== null || this.client.aborted || this.#stop.signal.aborted) return;
    this.#answer = send(linkedSignal(this.client, this.#stop.signal).signal);
    // Whoever asks for the answer is told; after `giveUp` nobody does.
    this.#answer.catch(() => {});
  }

  /** Null where it was not begun. */
  get answer(): Promise<T> | null {
    return this.#answer;
  }

  /** Ends the call where it was begun, and lets none begin. */
  giveUp(): void {
    this.#stop.abort();
  }
}
