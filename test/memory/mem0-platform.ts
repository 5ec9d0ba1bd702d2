import { MemoryClient } from "mem0ai";
import { vi } from "vitest";
import { startPlatformServer, type WireServer } from "./mem0-wire-server.js";

export const MEM0_KEY = "m0-key";

/** Mem0's platform with a memory of Ana's, and Mem0's client of it, which may warn that its ping is not answered. */
export async function platformWith(
  memory: string,
): Promise<{ readonly server: WireServer; readonly client: MemoryClient }> {
  vi.stubEnv("MEM0_TELEMETRY", "false");
  for (const level of ["error", "warn"] as const) vi.spyOn(console, level).mockImplementation(() => {});
  const server = await startPlatformServer(MEM0_KEY);
  const client = new MemoryClient({ apiKey: MEM0_KEY, host: server.url });
  await client.add([{ role: "user", content: memory }], { userId: "ana", infer: false });
  return { server, client };
}
