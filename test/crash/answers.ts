import type { z } from "zod";
import { parseSection, sectionAtStart } from "../../src/core/prompt/section.js";
import type { composeResult } from "../../src/http/contracts/compose-contract.js";

/** A body of `POST /compose` that can be sent again. */
export type Body = Readonly<Record<string, unknown>> & { readonly user_id: string; readonly request_id: string };

type ComposeResult = z.output<typeof composeResult>;
export type Message = ComposeResult["messages"][number];

/** Services of one database in a file, which is always there: they reject nothing with 503. */
export function servicesAt(address: () => string): Services {
  return {
    address,
    rejected(_since, what) {
      throw new Error(what);
    },
  };
}

/** A request that was answered, with the bytes that came back. */
export interface Answered {
  readonly body: Body;
  readonly text: string;
}

/** The service died, was not there, or could not reach its database: nothing is known of the request, which can be sent again. */
export const GONE = Symbol("gone");

/** Services that are asked for things, any of them. */
export interface Services {
  /** Of one of those that run; null: nothing more is to be asked for. */
  address(): string | null;
  /**
   * Called for a request that was rejected with 503, and sent at `since` (of `performance.now()`). Throws where the services had no reason
   * to reject it.
   */
  rejected(since: number, what: string): void;
}

/** What the service answered, of which it may have lost none. */
export class Answers {
  readonly #byId = new Map<string, Answered>();
  /** Those since the last {@link settle}. */
  readonly fresh: Answered[] = [];
  arrived = 0;

  get size(): number {
    return this.#byId.size;
  }

  all(): Answered[] {
    return [...this.#byId.values()];
  }

  /** Keeps an answer. Throws where the same request had another one before. */
  keep(body: Body, text: string): void {
    const before = this.#byId.get(body.request_id);
    if (before !== undefined && before.text !== text)
      throw new Error(`${body.request_id} was answered twice, differently`);
    this.arrived++;
    if (before !== undefined) return;
    const answered = { body, text };
    this.#byId.set(body.request_id, answered);
    this.fresh.push(answered);
  }

  dropUser(user: string): void {
    for (const [id, { body }] of this.#byId) if (body.user_id === user) this.#byId.delete(id);
    const kept = this.fresh.filter(({ body }) => body.user_id !== user);
    this.fresh.splice(0, Number.POSITIVE_INFINITY, ...kept);
  }

  /** Every text that a label had in any answer to a user. Throws where an answer does not list the blocks that its prompt adds. */
  textsByLabel(user: string): Map<number, Set<string>> {
    const texts = new Map<number, Set<string>>();
    for (const { body, text } of this.#byId.values()) {
      if (body.user_id !== user) continue;
      const { messages, blocks } = JSON.parse(text) as ComposeResult;
      // The list has blocks without labels, in the order of the answer. It has neither those of earlier turns, which those turns' answers have,
      // nor those that replace others, which are in lines after the list.
      const added = blocks.filter(({ placement, replaces }) => placement !== "earlier_turn" && replaces.length === 0);
      const labels = [...new Set(added.map(({ label }) => label))];
      const section = sectionAtStart(String(messages.at(-1)?.content));
      const standing = (section === null ? null : parseSection(section))?.blocks ?? [];
      if (standing.length !== labels.length)
        throw new Error(`${body.request_id} lists ${labels.length} blocks and adds ${standing.length}`);
      for (const [at, label] of labels.entries())
        texts.set(label, (texts.get(label) ?? new Set()).add(standing[at]?.text ?? ""));
    }
    return texts;
  }
}

export function messagesIn(text: string): readonly Message[] {
  return (JSON.parse(text) as ComposeResult).messages;
}

/** Sends a request. Resolves to {@link GONE} where no answer comes; throws where it is rejected for no good reason. */
export async function ask(
  services: Services,
  method: string,
  path: string,
  body?: unknown,
): Promise<string | typeof GONE> {
  const address = services.address();
  if (address === null) return GONE;
  const since = performance.now();
  try {
    const answer = await fetch(address + path, {
      method,
      ...(body === undefined
        ? {}
        : {
            body: typeof body === "string" ? body : JSON.stringify(body),
            headers: { "content-type": "application/json" },
          }),
    });
    const text = await answer.text();
    if (answer.status === 200) return text;
    const what = `${method} ${path}: ${answer.status} ${text}`;
    if (answer.status !== 503) throw new Error(what);
    services.rejected(since, what);
    return GONE;
  } catch (error) {
    if (error instanceof TypeError) return GONE;
    throw error;
  }
}
