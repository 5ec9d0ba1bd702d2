import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether what listens at this address can be reached from this machine only. */
export function isLoopbackAddress(host: string): boolean {
  // As nearly everybody writes it: every request is asked.
  if (host === "127.0.0.1" || host.toLowerCase() === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && LOOPBACK.check(host, version === 4 ? "ipv4" : "ipv6");
}

/** Whether a `Host` header, with or without a port, names the loopback. */
export function isLoopbackHost(header: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(header) ?? [];
  return isLoopbackAddress(bracketed ?? plain ?? "");
}
