import { seeded } from "../../src/eval/measures/bootstrap.js";
import { type Answers, ask, type Body, GONE, messagesIn, type Services } from "./answers.js";

const DEEDS = ["turns", "chats", "batches", "evictions", "reports", "forgottenMemories", "forgottenUsers"] as const;
/** How often actors did what, beside composing. */
export type Deeds = Record<(typeof DEEDS)[number], number>;

export const noDeeds = () => Object.fromEntries(DEEDS.map((deed) => [deed, 0])) as Deeds;

/** Whether everything was done at least once, but for chats where nobody does. */
export function isEachDone(deeds: Deeds, isChatting: boolean): boolean {
  return DEEDS.every((deed) => deeds[deed] > 0 || (deed === "chats" && !isChatting));
}

/** What was asked to be forgotten, by the mark that a memory's text carries. */
export interface Forgotten {
  /** The service said so: gone for good. */
  readonly gone: Set<string>;
  /** Asked for; a service that was killed may have done it and not said so. */
  readonly going: Set<string>;
}

/** Something that asks services for things, one after the other, until one gives no answer; then again, beginning with that. */
export type Actor = (services: Services) => Promise<void>;

/** Turns of a conversation before another one begins. */
const TURNS = 25;

/** Chooses what actors do; each has numbers of its own, so that what it asks does not depend on the others' pace. */
export class Choices {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  /** What a search might find: some of thirty memories, of which some have changed. */
  found(name: string): { readonly id: string; readonly memory: string }[] {
    const ids = new Set(Array.from({ length: 6 }, () => this.pick(30)));
    return [...ids].map((id) => memoryOf(`${name}-${id}`, this.pick(10) === 0 ? this.pick(3) : 0));
  }
}

export function memoryOf(name: string, version: number): { readonly id: string; readonly memory: string } {
  return { id: `m-${name}.`, memory: `Fact mk-${name}-v${version}. of many\nwith a [${version}] in it` };
}

/** Every mark of a memory in a text or a file. */
export function marksIn(text: string): Set<string> {
  return new Set([...text.matchAll(/\bmk-([a-z0-9-]+)-v\d\./g)].map(([, name]) => name ?? ""));
}

/** What somebody asks for, one after the other. */
interface Asking {
  /** The next prompt to compose; null: a service gave no answer before that, so it is asked for again. */
  next(services: Services): Body | Promise<Body | null>;
  /** Looks at an answer. */
  seen?(text: string, body: Body): void;
}

/** Composes one prompt after the other; one that is not answered is asked for again. */
function composer(answers: Answers, { next, seen }: Asking): Actor {
  let pending: Body | null = null;
  return async (services) => {
    for (;;) {
      pending ??= await next(services);
      if (pending === null) return;
      const text = await ask(services, "POST", "/compose", pending);
      if (text === GONE) return;
      seen?.(text, pending);
      answers.keep(pending, text);
      pending = null;
    }
  };
}

/** Asks one question of a conversation after the other; every prompt has to begin with the bytes of the one before. */
export function talker(answers: Answers, deeds: Deeds, user: string, choices: Choices): Actor {
  let conversation = 0;
  let turns = 0;
  let history: readonly unknown[] = [];
  let before: readonly unknown[] = [];
  return composer(answers, {
    next() {
      if (turns === TURNS) {
        conversation++;
        turns = 0;
        history = [];
        before = [];
      }
      history = [...history, { role: "user", content: `Question ${turns}` }];
      const request_id = `${user}-c${conversation}-${turns}`;
      const body = { user_id: user, conversation_id: `c-${conversation}`, request_id, messages: history };
      return { ...body, memories: choices.found(user) };
    },
    seen(text, { request_id }) {
      const messages = messagesIn(text);
      if (JSON.stringify(messages.slice(0, before.length)) !== JSON.stringify(before))
        throw new Error(`${request_id} does not begin with the prompt before it`);
      if (messages.length !== before.length + 1) throw new Error(`${request_id} adds more than its question`);
      deeds.turns++;
      turns++;
      const answer = { role: "assistant", content: `Answer ${turns}` };
      before = [...messages, answer];
      history = [...history, answer];
    },
  });
}

/** Single prompts, side by side with what else asks for the same user. */
export function asker(answers: Answers, user: string, choices: Choices): Actor {
  let asked = 0;
  return composer(answers, {
    next: () => ({ user_id: user, request_id: `${user}-s${asked++}`, query: "Well?", memories: choices.found(user) }),
  });
}

/** Batches of several users, every other one routed to workers. */
export function batcher(answers: Answers, deeds: Deeds, users: readonly string[], choices: Choices): Actor {
  let batch = 0;
  let pending: readonly Body[] | undefined;
  return async (services) => {
    for (;;) {
      pending ??= Array.from({ length: 4 + choices.pick(20) }, (_, n) => {
        const user = users[choices.pick(users.length)] ?? "";
        return { user_id: user, request_id: `b${batch}-${n}`, query: "And?", memories: choices.found(user) };
      });
      if (!(await sendBatch(services, pending, batch % 2 === 0 ? {} : { workers: ["one", "two"] }, answers))) return;
      batch++;
      pending = undefined;
      deeds.batches++;
    }
  };
}

interface BatchEntry {
  readonly index: number;
  readonly answer?: { worker?: string; engine: { headers: Record<string, string> } };
  readonly problem?: { readonly status: number };
}

/** @returns whether every request was answered */
async function sendBatch(
  services: Services,
  bodies: readonly Body[],
  options: object,
  answers: Answers,
): Promise<boolean> {
  const since = performance.now();
  const text = await ask(services, "POST", "/compose/batch", { requests: bodies, ...options });
  if (text === GONE) return false;
  const { answers: entries } = JSON.parse(text) as { readonly answers: readonly BatchEntry[] };
  const rejected = entries.filter(({ problem }) => problem !== undefined);
  for (const { problem } of rejected) {
    if (problem?.status !== 503) throw new Error(`a batch's request failed: ${JSON.stringify(problem)}`);
    services.rejected(since, JSON.stringify(problem));
  }
  for (const { index, answer: composed } of entries) if (composed) keepBatched(bodies[index], composed, answers);
  return rejected.length === 0;
}

function keepBatched(body: Body | undefined, answer: NonNullable<BatchEntry["answer"]>, answers: Answers): void {
  // Where it was routed to is the batch's to say, and no part of the request's answer.
  delete answer.worker;
  for (const header of ["x-smg-routing-key", "x-dynamo-session-id"]) delete answer.engine.headers[header];
  if (body !== undefined) answers.keep(body, JSON.stringify(answer));
}

/** An engine: says what it cached of requests, and drops some. */
export function engine(answers: Answers, deeds: Deeds, choices: Choices): Actor {
  return async (services) => {
    for (;;) {
      const known = answers.all().filter(({ body }) => !isForgetful(body.user_id));
      const some = Array.from({ length: 3 }, () => known[choices.pick(known.length)]).filter(
        (one) => one !== undefined,
      );
      if (some.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      const evicts = choices.pick(2) === 0;
      const [{ body, text }] = some as [(typeof some)[0], ...typeof some];
      const plan = (JSON.parse(text) as { plan: { total_tokens: number } }).plan;
      const cached = Math.floor((choices.pick(5) / 4) * plan.total_tokens);
      const report = {
        user_id: body.user_id,
        request_id: body.request_id,
        prompt_tokens: plan.total_tokens,
        cached_tokens: cached,
        ttft_ms: 1 + choices.pick(500),
      };
      const answer = evicts
        ? await ask(services, "POST", "/evict", { request_ids: some.map((one) => one.body.request_id) })
        : await ask(services, "POST", "/feedback", report);
      if (answer === GONE) return;
      if (evicts) deeds.evictions++;
      else deeds.reports++;
    }
  };
}

/** Users who forget, or are forgotten: their requests can be sent again only until then. */
export function isForgetful(user: string): boolean {
  return user.startsWith("f") || user.startsWith("l");
}

/** Asks, and forgets one of the memories now and then. */
export function forgetter(answers: Answers, deeds: Deeds, forgotten: Forgotten, user: string, choices: Choices): Actor {
  let count = 0;
  let asked = 0;
  let forgetting: number | undefined;
  let before: ReadonlySet<string> = new Set();
  const left: number[] = [];
  return composer(answers, {
    async next(services) {
      if (forgetting === undefined && left.length > 8 && choices.pick(3) === 0)
        [forgetting] = left.splice(choices.pick(left.length), 1);
      if (forgetting !== undefined) {
        const name = `${user}-${forgetting}`;
        forgotten.going.add(name);
        if ((await ask(services, "DELETE", `/users/${user}/memories/m-${name}.`)) === GONE) return null;
        forgotten.gone.add(name);
        deeds.forgottenMemories++;
        forgetting = undefined;
      }
      before = new Set(forgotten.gone);
      left.push(count++);
      const named = new Set(Array.from({ length: 5 }, () => left[choices.pick(left.length)] ?? 0));
      const memories = [...named].map((n) => memoryOf(`${user}-${n}`, 0));
      return { user_id: user, request_id: `${user}-s${asked++}`, query: "Still?", memories };
    },
    seen: (text) => refuseForgotten(text, before, user),
  });
}

/** Throws where a prompt has what was forgotten before it was asked for. */
function refuseForgotten(text: string, gone: ReadonlySet<string>, user: string): void {
  const told = [...marksIn(text)].filter((name) => gone.has(name));
  if (told.length > 0) throw new Error(`${user} is told ${told}, which was forgotten`);
}

/** Asks a few times, and is forgotten with everything; then comes back as if new. */
export function leaver(answers: Answers, deeds: Deeds, forgotten: Forgotten, user: string, choices: Choices): Actor {
  let life = 0;
  let asked = 0;
  let told = new Set<string>();
  return composer(answers, {
    async next(services) {
      if (asked >= 4) {
        answers.dropUser(user);
        if ((await ask(services, "DELETE", `/users/${user}`)) === GONE) return null;
        for (const name of told) forgotten.gone.add(name);
        deeds.forgottenUsers++;
        told = new Set();
        asked = 0;
        life++;
      }
      const memories = choices.found(`${user}-life${life}`);
      for (const name of marksIn(memories.map(({ memory }) => memory).join("\n"))) told.add(name);
      return { user_id: user, request_id: `${user}-${life}-${asked++}`, query: "Who am I?", memories };
    },
    seen(text) {
      refuseForgotten(text, forgotten.gone, user);
      if (life > 0 && asked === 1 && !/\\n(?:1|-) Fact/.test(text)) throw new Error(`${user} came back and was known`);
    },
  });
}
