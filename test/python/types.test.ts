import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../docs/pages.js";
import { servedApp } from "../http/server/served-app.js";
import { typedDicts } from "./typed-dicts.js";

const REQUESTS = ["ComposeRequest", "Batch", "BatchRequest", "FeedbackRequest", "AddRequest"];
const ANSWERS = [
  "ComposeAnswer",
  "BatchResult",
  "FeedbackAnswer",
  "AddAnswer",
  "ForgottenMemory",
  "ForgottenUser",
  "Problem",
];

const app = servedApp();

it("the types of the package for Python are those of the OpenAPI document", async () => {
  const document: unknown = await (await fetch(`${app.base}/openapi.json`)).json();
  await expect(typedDicts(document, REQUESTS, ANSWERS)).toMatchFileSnapshot(
    join(ROOT, "python/src/memprefix/types.py"),
  );
});
