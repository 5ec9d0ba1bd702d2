import { beforeEach, describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { OpenApiDocument } from "./openapi-document.js";

describe("GET /openapi.json", () => {
  const app = servedApp();
  let document: OpenApiDocument;
  beforeEach(async () => {
    document = await OpenApiDocument.of(app);
  });

  it("asks for a key, in either form, of every route but those that say whether the service works", () => {
    for (const path of ["/healthz", "/livez"]) expect(document.isOpen("get", path)).toBe(true);
    for (const operation of document.operations) {
      const [method = "", path = ""] = operation.split(" ");
      if (operation === "GET /healthz" || operation === "GET /livez") continue;
      expect(document.isOpen(method.toLowerCase(), path), operation).toBe(false);
    }
  });

  it("has the same schemas of messages in requests and in answers", () => {
    const message = { $ref: "#/components/schemas/Message" };
    const messages = { type: "array", items: { anyOf: [message, { $ref: "#/components/schemas/ResponsesItem" }] } };
    expect(document.component("ComposeRequest")).toMatchObject({
      properties: { messages: { ...messages, type: ["array", "null"] } },
    });
    expect(document.component("ComposeAnswer")).toMatchObject({ properties: { messages } });
    expect(document.component("ChatRequest")).toMatchObject({ properties: { messages: { items: message } } });
  });

  it("gives messages no index signature, to which the types of OpenAI's client could not be assigned", () => {
    for (const name of ["Message", "ResponsesItem"])
      expect(JSON.stringify(document.component(name))).not.toContain("additionalProperties");
    expect(document.accepts("Message", { role: "user", content: [{ type: "text", text: "Tea?", more: 1 }] })).toBe(
      true,
    );
  });

  it("has something at the end of every reference", () => {
    expect(document.references.length).toBeGreaterThan(10);
    expect(document.references.filter((reference) => !document.resolves(reference))).toEqual([]);
  });

  it("requires user_id of a compose, and nothing else", () => {
    expect(document.component("ComposeRequest")["required"]).toEqual(["user_id"]);
  });
});
