import { type LinkedSignal, linkedSignal } from "../base/linked-signal.js";

/**
 * A call of the engine that starts before its prompt is stored, so that the two overlap. Its answer is not used before the prompt is durable
 * (docs/internals/architecture.md, "Promises"); where storing fails, the call is cancelled.
 */
export class SpeculativeCall<T> {
  #answer: Promise<T> | null = null;
  #call: LinkedSignal | null = null;
  #isCancelled = false;

  /** @param client aborts when the client disconnects, and the call with it */
  constructor(private readonly client: AbortSignal) {}

  /** Starts the call, except after {@link cancel}. An earlier one is aborted: its prompt was planned again. */
  start(send: (signal: AbortSignal) => Promise<T>): void {
    if (this.client.aborted || this.#isCancelled) return;
    this.#end();
    this.#call = linkedSignal(this.client);
    this.#answer = send(this.#call.signal);
    // Whoever awaits `answer` sees a rejection. After `cancel` nobody does, and that is no unhandled rejection.
    this.#answer.catch(() => {});
  }

  /** Null where no call was started. */
  get answer(): Promise<T> | null {
    return this.#answer;
  }

  /** Aborts a started call, and keeps any from being started. */
  cancel(): void {
    this.#isCancelled = true;
    this.#end();
  }

  #end(): void {
    this.#call?.abort();
    this.#call?.release();
  }
}
