import type { Server, ServerResponse } from "node:http";

/** The requests of a server whose answers are not out yet: bounded by its connections. */
export class RequestsUnderWay {
  readonly #answers = new Set<ServerResponse>();

  constructor(server: Server) {
    server.prependListener("request", (_request, answer) => {
      this.#answers.add(answer);
      answer.once("close", () => this.#answers.delete(answer));
    });
  }

  /** Resolves when those of now are answered to their end, or after `maxMs`. Those that come later are not waited for. */
  async finished(maxMs: number): Promise<void> {
    const answered = [...this.#answers].map(
      (answer) =>
        new Promise<void>((done) => {
          if (answer.closed) done();
          else answer.once("close", done);
        }),
    );
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxMs);
    });
    await Promise.race([Promise.all(answered), tooLate]);
    clearTimeout(timer);
  }
}
