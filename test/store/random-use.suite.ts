import type { OpenDatabase } from "./suite-database.js";
export function describeRandomUse(_open: OpenDatabase): void {}
