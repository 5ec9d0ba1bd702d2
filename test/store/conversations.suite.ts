import type { OpenDatabase } from "./suite-database.js";
export function describeConversations(_open: OpenDatabase): void {}
