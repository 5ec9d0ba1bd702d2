import type { ScopeBounds } from "../../core/index.js";

/** Bounds are enforced by the service, not by a check. */
export const NO_BOUNDS: ScopeBounds = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };
