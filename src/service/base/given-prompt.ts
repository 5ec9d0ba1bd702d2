import type { MessageFormat } from "./call-options.js";

/** What of a request gives its prompt the format of its messages. */
export interface GivenPrompt {
  readonly format: MessageFormat;
  /** The messages, as the caller gave them. */
  readonly given: readonly unknown[];
  /** Whether the request has instructions beside them. */
  readonly hasSystem: boolean;
}
