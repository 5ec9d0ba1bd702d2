/** Whose state a caller may read and change. */
export interface Tenant {
  readonly name: string;
  /** What the tenant's cache salts are made of: never its name, which could be guessed from a salt. */
  readonly cacheSecret: string;
}

/** The tenant of an installation without API keys; there is nothing to keep its salts from. */
export const DEFAULT_TENANT: Tenant = { name: "default", cacheSecret: "default" };
