/**
 * Runs jobs one at a time, in the order in which they came; a job that fails does not stop those after it. Holds one entry per call that
 * waits, so what bounds it is the number of requests that the service lets in.
 */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `job` after all jobs before it; settles as it does. */
  run<T>(job: () => T | Promise<T>): Promise<T> {
    const outcome = this.#last.then(job);
    this.#last = outcome.catch(() => undefined);
    return outcome;
  }

  /** Resolves when every job that has come so far has ended; never rejects. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
