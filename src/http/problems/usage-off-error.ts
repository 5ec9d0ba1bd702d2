/** What prompts cost is not recorded, so there is nothing to show. */
export class UsageOffError extends Error {
  override readonly name = "UsageOffError";
  constructor() {
    super("what prompts cost is not recorded: MEMSTEM_USAGE_PROMPTS is 0");
  }
}

/** Too many clients listen to a tenant's events. */
export class ManyListenersError extends Error {
  override readonly name = "ManyListenersError";
  constructor() {
    super("too many clients listen to the usage's events");
  }
}
