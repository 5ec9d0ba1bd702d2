/*
 * Access in the OpenAPI document: an API key in either header, or the webhook's own token.
 */

export const SECURITY_SCHEMES = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "`authorization: Bearer mst_…`. Not needed until the first key is added.",
  },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "The same key in its own header." },
} as const;

/** Of `POST /webhooks/mem0`, where it is served. */
export const WEBHOOK_SECURITY_SCHEMES = {
  webhookToken: { type: "apiKey", in: "query", name: "token", description: "`MEMSTEM_WEBHOOK_TOKEN`." },
  webhookBearer: { type: "http", scheme: "bearer", description: "The same token as a bearer's." },
} as const;

/** Either of them is enough. */
export const SECURITY = [{ bearer: [] }, { apiKey: [] }];
export const WEBHOOK_SECURITY = [{ webhookToken: [] }, { webhookBearer: [] }];
