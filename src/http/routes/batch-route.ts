import type { OpenAPIHono } from "@hono/zod-openapi";
import { linkedSignal } from "../../service/base/linked-signal.js";
import { type BatchEvent, composeBatch } from "../../service/batch/batch.js";
import * as wire from "../contracts/batch-contract.js";
import { operation } from "../contracts/operations.js";
import { readJson } from "../guards/body.js";
import { BATCH_PATH, type HttpEnvironment } from "../requests/request.js";
import { streamed } from "./chat-route.js";

/** `POST /compose/batch`: streams one JSON document. A client that disconnects stops the batch. */
export function addBatchRoute(
  app: OpenAPIHono<HttpEnvironment>,
  { onFault }: { readonly onFault: (error: unknown) => void },
): void {
  app.openAPIRegistry.registerPath(
    operation("composeBatch", {
      method: "post",
      path: BATCH_PATH,
      body: wire.batchBody,
      says: "A stream.",
      answer: wire.batchResult,
    }),
  );
  app.post(BATCH_PATH, (c) => {
    const given = readJson(c);
    if (given instanceof Response) return given;
    const { inputs, options } = wire.readBatch(given.value);
    const client = linkedSignal(c.req.raw.signal);
    const { signal } = client;
    const events = composeBatch(c.get("memprefix").batches, inputs, { ...options, signal });
    const body = streamed(jsonFor(events), client, (error, controller) => {
      if (!signal.aborted) onFault(error);
      controller.error(error);
    });
    return new Response(body, { headers: { "content-type": "application/json" } });
  });
}

const ENCODER = new TextEncoder();

async function* jsonFor(events: AsyncIterable<BatchEvent>): AsyncGenerator<Uint8Array, void, undefined> {
  let before = '{"answers":[';
  for await (const event of events) {
    const written = JSON.stringify(wire.writeBatchEvent(event));
    const text = event.kind === "end" ? `${before === "," ? "" : before}],${written.slice(1)}` : before + written;
    yield ENCODER.encode(text);
    before = ",";
  }
}
