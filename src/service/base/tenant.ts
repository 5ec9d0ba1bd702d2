/** The owner of state: callers read and change their tenant's only. */
export interface Tenant {
  readonly name: string;
  /** Secret that the tenant's cache salts are derived from. Not its name, which could be guessed from a salt. */
  readonly cacheSecret: string;
}

/** The tenant of an installation without API keys. Its salts are no secret. */
export const DEFAULT_TENANT: Tenant = { name: "default", cacheSecret: "default" };
