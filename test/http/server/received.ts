import type { IncomingMessage } from "node:http";

/** What came of an answer's body. */
export interface Received {
  readonly bytes: Buffer;
  /** False: the connection broke off before its end. */
  readonly isWhole: boolean;
}

/** Reads a body, or what there is of one that breaks off. Call it in the tick of the response: nothing that came is dropped. */
export function receivedOf(answer: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  return new Promise((received) => {
    answer.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => {});
    answer.once("close", () => received({ bytes: Buffer.concat(chunks), isWhole: answer.complete }));
  });
}
