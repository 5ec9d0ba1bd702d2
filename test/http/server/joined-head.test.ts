import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it } from "vitest";
import { JoinedHead } from "../../../src/http/server/joined-head.js";

/** What arrives, write by write. */
async function arriving(answer: (response: ServerResponse) => void, packets: number): Promise<string[]> {
  const server = createServer({ ServerResponse: JoinedHead }, (_request, response) => answer(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: here\r\n\r\n");
  const arrived: string[] = [];
  while (arrived.length < packets) arrived.push(String((await once(socket, "data"))[0]));
  socket.destroy();
  server.close();
  return arrived;
}

describe("a response's head", () => {
  it("leaves with what of its body is at hand", async () => {
    const [first] = await arriving((response) => {
      response.flushHeaders();
      void Promise.resolve().then(() => response.write("token"));
    }, 1);
    expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n5\r\ntoken\r\n$/);
  });

  it("does not wait for a body that is slow to come", async () => {
    let goOn = () => {};
    const [head] = await arriving((response) => {
      response.flushHeaders();
      goOn = () => response.end("late");
    }, 1);
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
    goOn();
  });
});
