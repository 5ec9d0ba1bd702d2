/**
 * The control of `npm run bench -- load`: answers every request once it has computed for `CONTROL_MS` milliseconds (1), and tells of its event loop on
 * `/metrics` as the service does.
 */
import { createServer } from "node:http";
import { collectDefaultMetrics, Registry } from "prom-client";

const SPIN_MS = Number(process.env["CONTROL_MS"] ?? 1);
const registry = new Registry();
collectDefaultMetrics({ register: registry });

function spin(): void {
  const end = performance.now() + SPIN_MS;
  while (performance.now() < end);
}

const server = createServer((request, response) => {
  if (request.url === "/metrics") {
    void registry.metrics().then((text) => response.end(text));
    return;
  }
  request.resume().on("end", () => {
    spin();
    const body = "{}";
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  console.log(`http://127.0.0.1:${address.port} answers`);
});
