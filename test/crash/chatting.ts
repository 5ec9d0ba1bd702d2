import type { IncomingMessage } from "node:http";
import { Gate } from "../gate.js";
import { localServer } from "../local-server.js";
import { type Actor, type Choices, type Deeds, type Forgotten, marksIn, memoryOf } from "./actors.js";
import { ask, GONE } from "./answers.js";

/** An engine that answers every chat, as slowly as it is told, and looks at what it is sent. */
export interface WatchingEngine {
  readonly url: string;
  /** What was sent to it though it had been forgotten by then. */
  readonly told: string[];
  /** Every mark that was sent to it. */
  readonly heard: ReadonlySet<string>;
  /** Has chats of the user pass this gate from now on, until it is opened. */
  hold(user: string): Gate;
  close(): Promise<void>;
}

export async function watchingEngine({ gone }: Forgotten): Promise<WatchingEngine> {
  const told: string[] = [];
  const heard = new Set<string>();
  const held = new Map<string, Gate>();
  const { url, close } = await localServer(async (request, response) => {
    const raw = await textOf(request);
    if (raw === null) return;
    for (const mark of marksIn(raw)) {
      heard.add(mark);
      if (gone.has(mark)) told.push(mark);
    }
    const { user = "", messages = [] } = JSON.parse(raw || "{}") as { user?: string; messages?: { content: string }[] };
    await held.get(user)?.pass();
    const [said = "nothing"] = /mk-[a-z0-9-]+-v\d\./.exec(messages.at(-1)?.content ?? "") ?? [];
    const message = { role: "assistant", content: `Noted: ${said}` };
    // A connection that it closes just as the next chat is sent would be a failure of the engine.
    response
      .writeHead(200, { "content-type": "application/json", connection: "close" })
      .end(JSON.stringify({ object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }] }));
  });
  return {
    url: `${url}/v1`,
    told,
    heard,
    hold(user) {
      const gate = new Gate();
      held.set(user, gate);
      return gate;
    },
    close,
  };
}

/** Null where the service was killed while it sent. */
async function textOf(request: IncomingMessage): Promise<string | null> {
  try {
    return Buffer.concat(await request.toArray()).toString("utf8");
  } catch {
    return null;
  }
}

/**
 * Chats, and has what was said kept as memories; is forgotten while the engine still answers, often by another service than the one that
 * waits for the answer. What was said before, and what is being answered then, is never to reach the engine again, and to stand in no file.
 */
export function chatter(
  engine: WatchingEngine,
  deeds: Deeds,
  forgotten: Forgotten,
  user: string,
  choices: Choices,
): Actor {
  let life = 0;
  let isLeaving = false;
  return async (services) => {
    const name = () => `${user}-life${life}`;
    const chat = (content: string) =>
      ask(services, "POST", "/v1/chat/completions", {
        user,
        messages: [{ role: "user", content }],
        memprefix: { write_back: true },
      });
    for (;;) {
      if (!isLeaving) {
        for (let told = 1 + choices.pick(3); told > 0; told--) {
          if ((await chat(`Remember mk-${name()}-v${told}.`)) === GONE) return;
          deeds.chats++;
        }
        if ((await chat("What do you know?")) === GONE) return;
      }
      const answering = engine.hold(user);
      try {
        const last = chat(`And this: mk-${name()}-v9.`);
        const isReached = await Promise.race([answering.reached.then(() => true), last.then(() => false)]);
        if (!isReached) return;
        isLeaving = true;
        const left = await ask(services, "DELETE", `/users/${user}`);
        if (left !== GONE) {
          forgotten.gone.add(name());
          deeds.forgottenUsers++;
          isLeaving = false;
          life++;
        }
        answering.open();
        if ((await last) === GONE || left === GONE) return;
      } finally {
        answering.open();
      }
    }
  };
}

/**
 * Chats on in a conversation that was begun with a memory, so that every prompt replays it; has it forgotten, and chats on again, each request
 * to any service. From then on the engine is never to be told it, whoever has it in memory still.
 */
export function replayer(
  engine: WatchingEngine,
  deeds: Deeds,
  forgotten: Forgotten,
  user: string,
  choices: Choices,
): Actor {
  let begun = 0;
  let forgetting: string | null = null;
  return async (services) => {
    for (;;) {
      if (forgetting !== null && (await forget(forgetting)) === GONE) return;
      forgetting = null;
      const name = `${user}-${begun++}`;
      const messages = [{ role: "user", content: "Question 0" }];
      const conversation = { conversation_id: `c-${name}` };
      const memories = [memoryOf(name, 0)];
      if ((await ask(services, "POST", "/compose", { user_id: user, ...conversation, messages, memories })) === GONE)
        return;
      const chat = async () => {
        messages.push(
          { role: "assistant", content: "Noted." },
          { role: "user", content: `Question ${messages.length}` },
        );
        return ask(services, "POST", "/v1/chat/completions", { user, messages, memprefix: conversation });
      };
      for (let chats = 1 + choices.pick(3); chats > 0; chats--) if ((await chat()) === GONE) return;
      // While the database is away, prompts go on as they are.
      if (engine.heard.has(name)) deeds.chats++;
      forgetting = name;
      if ((await forget(name)) === GONE) return;
      forgetting = null;
      for (let chats = 1 + choices.pick(3); chats > 0; chats--) if ((await chat()) === GONE) return;
    }

    async function forget(name: string): Promise<string | typeof GONE> {
      forgotten.going.add(name);
      const answer = await ask(services, "DELETE", `/users/${user}/memories/m-${name}.`);
      if (answer === GONE) return GONE;
      forgotten.gone.add(name);
      deeds.forgottenMemories++;
      return answer;
    }
  };
}
