import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether an address is a loopback address: reachable from this machine only. */
export function isLoopbackAddress(host: string): boolean {
  // The usual spellings first: this runs for every request.
  if (host === "127.0.0.1" || host.toLowerCase() === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && LOOPBACK.check(host, version === 4 ? "ipv4" : "ipv6");
}

/** Whether a `Host` header, with or without a port, names the loopback. */
export function isLoopbackHost(header: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(header) ?? [];
  return isLoopbackAddress(bracketed ?? plain ?? "");
}
