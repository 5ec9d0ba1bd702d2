import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import { openEmbeddedStore } from "../../src/memory/embedded-store.js";
import { openHostedMem0 } from "../../src/memory/hosted-mem0.js";
import { withoutTelemetry } from "../../src/memory/mem0-packages.js";
import { withDeadline } from "../../src/memory/memory-source.js";
import { openOwnMem0 } from "../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { temporaryFolders } from "../temporary-folders.js";
import { startPlatformServer, startRestServer } from "./mem0-wire-server.js";
import { describeMemorySource } from "./memory-source.suite.js";

const newFolder = temporaryFolders();

describeMemorySource("embedded Mem0", {
  async open() {
    const source = openEmbeddedMem0({ dataDir: newFolder() });
    return { source, dispose: () => source.close() };
  },
  withoutAgent: "those without one",
});

describeMemorySource("Mem0 REST server, with a deadline", {
  async open() {
    const server = await startRestServer("m0-secret");
    const source = openRestMem0({ url: server.url, apiKey: "m0-secret" });
    return { source: withDeadline(source, { searchMs: 5_000, writeMs: 5_000 }), dispose: () => server.close() };
  },
  withoutAgent: "all",
});

const ownUsers = "who the users are is the caller's matter: memprefix never asks for it";
describeMemorySource("a caller's own Memory", {
  async open() {
    const { memory, close } = await openEmbeddedStore(newFolder());
    const source = withDeadline(openOwnMem0(memory), { searchMs: 20_000, writeMs: 20_000 });
    return { source, dispose: async () => close() };
  },
  withoutAgent: "all",
  skips: { "forgets a user in all agents, and nobody else": ownUsers },
});

describeMemorySource("a caller's own MemoryClient", {
  async open() {
    const server = await startPlatformServer("m0-secret");
    withoutTelemetry();
    const { MemoryClient } = await import("mem0ai");
    const own = new MemoryClient({ apiKey: "m0-secret", host: server.url });
    const source = withDeadline(openOwnMem0(own), { searchMs: 20_000, writeMs: 20_000 });
    return { source, dispose: () => server.close() };
  },
  withoutAgent: "those without one",
  skips: {
    "gives back what it added with ids, in order": "the platform queues what is added, and answers with an event only",
    "forgets a user in all agents, and nobody else": ownUsers,
  },
});

describeMemorySource("hosted Mem0", {
  async open() {
    const server = await startPlatformServer("m0-secret");
    const source = openHostedMem0({ apiKey: "m0-secret", url: server.url });
    return { source, dispose: () => server.close() };
  },
  withoutAgent: "those without one",
  skips: {
    "gives back what it added with ids, in order": "the platform queues what is added, and answers with an event only",
  },
});
