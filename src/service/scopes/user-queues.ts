/**
 * Runs the jobs of one user one after the other, in the order they came, and those of different users side by side. Holds one entry
 * per user with a job under way: bounded by the requests that are being served.
 */
export class UserQueues {
  readonly #tails = new Map<string, Promise<unknown>>();
  /** Jobs of each user that are not done. */
  readonly #waiting = new Map<string, number>();
  #jobs = 0;

  run<T>(user: string, job: () => T | Promise<T>): Promise<T> {
    const outcome = (this.#tails.get(user) ?? Promise.resolve()).then(job);
    const tail = outcome.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(user, tail);
    this.#waiting.set(user, this.waiting(user) + 1);
    this.#jobs++;
    void tail.then(() => {
      this.#jobs--;
      if (this.#tails.get(user) === tail) {
        this.#tails.delete(user);
        this.#waiting.delete(user);
      } else this.#waiting.set(user, this.waiting(user) - 1);
    });
    return outcome;
  }

  /** A user's jobs that are under way or wait. */
  waiting(user: string): number {
    return this.#waiting.get(user) ?? 0;
  }

  /** Users with a job under way. */
  get busy(): number {
    return this.#tails.size;
  }

  /** All users' jobs that are under way or wait. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Resolves when everything that has come so far is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}
