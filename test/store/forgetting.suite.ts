import type { OpenDatabase } from "./suite-database.js";
export function describeForgetting(_open: OpenDatabase): void {}
