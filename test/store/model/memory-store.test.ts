import { describeStore } from "../api/store.suite.js";
import { MemoryStore } from "./memory-store.js";

describeStore("the model in memory", () => new MemoryStore());
