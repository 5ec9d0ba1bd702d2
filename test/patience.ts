import { vi } from "vitest";

/** Milliseconds in which what a test waits for has to come, however busy the machine. `vitest.config.ts` says the same of `expect.poll`. */
const PATIENCE_MS = 60_000;

const { waitFor } = vi;
vi.waitFor = (callback, options = PATIENCE_MS) => waitFor(callback, options);
