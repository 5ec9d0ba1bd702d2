import { memoryTextProblem } from "../core/text/storable-text.js";
import { MemorySourceError } from "./memory-source.js";

/** Throws {@link MemorySourceError} `unsupported` for a text that cannot be a memory. */
export function checkMemoryText(source: string, text: string): void {
  const problem = memoryTextProblem(text);
  if (problem !== null) {
    throw new MemorySourceError(source, { kind: "unsupported", operation: `keep a memory: its text ${problem}` });
  }
}
