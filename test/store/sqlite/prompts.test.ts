import { openInMemory } from "../../../src/store/sqlite/open.js";
import { describePrompts } from "../prompts.suite.js";

describePrompts("prompts in SQLite", async () => openInMemory());
