/*
 * Preloaded into a compared service, and into its threads: the time does not pass by itself, it goes on with each request that comes. So what
 * depends on how long ago something was is the same in every run.
 */
import { Server } from "node:http";

const STEP_MS = 1_700;
const start = Number(process.env.CLOCK_STARTS_AT);
let now = start;
performance.now = () => now - start;
const { emit } = Server.prototype;
Server.prototype.emit = function (event, ...args) {
  if (event === "request") now += STEP_MS;
  return emit.call(this, event, ...args);
};
globalThis.Date = class extends Date {
  constructor(...given) {
    super(...(given.length === 0 ? [now] : given));
  }

  static now() {
    return now;
  }
};
