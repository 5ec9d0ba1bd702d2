import type { RequestListener } from "node:http";
import { onTestFinished } from "vitest";
import { localServer } from "./local-server.js";

/** A server in front of memprefix's, or in its place, for as long as the test runs. Gives its address. */
export async function standIn(listener: RequestListener): Promise<string> {
  const { url, close } = await localServer(listener);
  onTestFinished(close);
  return url;
}
