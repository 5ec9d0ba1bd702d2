/** Headers by which gateways send requests with equal values to one replica: SGLang's model gateway and NVIDIA Dynamo. */
const ROUTING_HEADERS = ["x-smg-routing-key", "x-dynamo-session-id"] as const;

/** The headers that route a request to a worker; none for no worker. */
export function routingHeaders(worker: string | undefined): Readonly<Record<string, string>> {
  return worker === undefined ? {} : Object.fromEntries(ROUTING_HEADERS.map((header) => [header, worker]));
}
