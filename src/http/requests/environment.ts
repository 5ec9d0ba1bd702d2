import type { IncomingMessage } from "node:http";
import type { NotComposedReason } from "../../service/chat/composing-in-time.js";
import type { Memstem } from "../../service/library/memstem.js";

/** What the log gets to know of a composed prompt. */
export interface ComposedEntry {
  readonly requestId?: string;
  readonly totalTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly warnings?: readonly string[];
  /** Why a chat went to its engine as it came; absent where it did not. */
  readonly notComposed?: NotComposedReason;
}

/** One request's place among those in work. */
export interface PendingPlace {
  /** Counts the place as this holder's too, until it is free again. False, and not counted: the holder has its share already. */
  share(holder: string): boolean;
}

/** What requests carry on their way through the app. */
export interface HttpEnvironment {
  Bindings: {
    /** Node's request and its answer, where the app is served by Node. */
    readonly incoming?: IncomingMessage;
    readonly outgoing?: {
      readonly closed: boolean;
      once(event: "close", listener: () => void): unknown;
      setHeader(name: string, value: string): unknown;
    };
  };
  Variables: {
    /** The caller's tenant; routes have no other way to anybody's state. */
    memstem: Memstem;
    /** The caller's key; null where keys are not in use. */
    keyId: string | null;
    /** The key itself where it is the configured one, which has a form of its own; absent for others. */
    configuredKey?: string;
    /** Its place among the requests in work; what is always answered has none. */
    place?: PendingPlace;
    composed?: ComposedEntry;
  };
}
