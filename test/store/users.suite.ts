import type { OpenDatabase } from "./suite-database.js";
export function describeUsers(_open: OpenDatabase): void {}
