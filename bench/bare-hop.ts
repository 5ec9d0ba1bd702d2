/**
 * The least that a proxy in a process of its own can do: hands requests on to `UPSTREAM` and answers back, unread. Prints its address.
 */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

const upstream = new URL(process.env["UPSTREAM"] ?? "");

const server = createServer((incoming, response) => {
  const { "content-type": type, "content-length": length } = incoming.headers;
  const target = { hostname: upstream.hostname, port: upstream.port, path: incoming.url, method: incoming.method };
  const outgoing = request({ ...target, headers: { "content-type": type, "content-length": length } }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, { "content-type": answer.headers["content-type"] });
    answer.pipe(response);
  });
  outgoing.on("error", () => response.destroy());
  response.on("error", () => outgoing.destroy());
  incoming.pipe(outgoing);
}).listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
