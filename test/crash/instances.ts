import { type Environment, type Launched, launch, listening } from "../cli/launch.js";
import type { EmbeddedServer } from "../postgres/embedded-server.js";
import type { Choices } from "./actors.js";
import type { Services } from "./answers.js";
import { checkKilled } from "./promises.js";

/** What a service says that cannot start, or rejects a request, as its database is away. */
const UNREACHABLE = "server cannot be reached";
/** What it says that waited for a lock for longer than it may. */
const LOCKED = "holds the database locked";
/** Milliseconds for which a busy server may not have ended the session of a killed instance, and with it its locks. */
const HELD_MS = 10_000;
/** Milliseconds until an instance that found no database is started again. */
const AGAIN_MS = 200;

/** A PostgreSQL server that is killed now and then, and when that was. */
export class KilledServer {
  kills = 0;
  #killedAt = 0;
  /** When it last took connections again, of `performance.now()`; infinity: it is away. */
  #backAt = 0;

  constructor(private readonly server: EmbeddedServer) {}

  /** Kills it, and starts it again after a pause in milliseconds. Resolves when it takes connections. */
  async killFor(pause: number): Promise<void> {
    this.kills++;
    this.#killedAt = performance.now();
    this.#backAt = Number.POSITIVE_INFINITY;
    await this.server.kill();
    await new Promise((resolve) => setTimeout(resolve, pause));
    await this.server.restart();
    this.#backAt = performance.now();
  }

  wasAway(since: number): boolean {
    return this.kills > 0 && since <= this.#backAt && performance.now() >= this.#killedAt;
  }
}

interface Instance {
  readonly service: Launched;
  /** Null: it does not listen yet. A killed one keeps its own for a while, as those who ask it do not know. */
  address: string | null;
  isKilled: boolean;
}

/** Instances of the built service on one database; every request goes to any of them, also to one that was just killed. */
export class Instances implements Services {
  /** Requests that were rejected as the database was away, or locked by an instance that was killed. */
  rejections = 0;
  kills = 0;
  /** Instances that were started while the database was away, and said so. */
  vainStarts = 0;
  #isAsked = false;
  /** When instances were killed, in milliseconds since the epoch. */
  readonly #killedAt: number[] = [];
  readonly #instances: Instance[] = [];
  #failure: unknown = null;

  constructor(
    private readonly environment: Environment,
    private readonly server: KilledServer,
    private readonly choices: Choices,
  ) {}

  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, at) => this.#start(at)));
  }

  /** From now on they are asked, or no longer. */
  ask(isAsked: boolean): void {
    this.#isAsked = isAsked;
  }

  address(): string | null {
    this.check();
    if (!this.#isAsked) return null;
    const some = this.#instances.flatMap(({ address }) => address ?? []);
    return some[this.choices.pick(some.length)] ?? null;
  }

  rejected(since: number, what: string): void {
    this.rejections++;
    const lastKill = this.#killedAt.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (what.includes(LOCKED) && performance.timeOrigin + since - lastKill < HELD_MS) return;
    if (!what.includes(UNREACHABLE)) throw new Error(`rejected for another reason than its database's: ${what}`);
    if (!this.server.wasAway(since)) throw new Error(`rejected though the database was there: ${what}`);
  }

  /** Throws where an instance ended that was not killed. */
  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Kills an instance, and starts another in its place; resolves when that listens. */
  async replace(at: number): Promise<void> {
    this.kills++;
    await this.#kill(at);
    await this.#start(at);
  }

  async stop(): Promise<void> {
    this.ask(false);
    await Promise.all(this.#instances.map((_, at) => this.#kill(at)));
  }

  async #kill(at: number): Promise<void> {
    const instance = this.#instances[at];
    if (instance === undefined) return;
    instance.isKilled = true;
    this.#killedAt.push(Date.now());
    instance.service.child.kill("SIGKILL");
    checkKilled(await instance.service.ended, (line) => line.includes(UNREACHABLE) || this.#isOfKill(line));
  }

  /** Whether a line of a log is of locks that a killed instance may have held still: usage that waited for them is recorded later. */
  #isOfKill(line: string): boolean {
    if (!line.includes(LOCKED)) return false;
    const { time } = JSON.parse(line) as { readonly time: number };
    return this.#killedAt.some((killed) => killed <= time && time - killed < HELD_MS);
  }

  async #start(at: number): Promise<void> {
    for (;;) {
      const since = performance.now();
      const instance: Instance = { service: launch(["serve"], this.environment), address: null, isKilled: false };
      const isKnown = this.#instances[at] !== undefined;
      if (!isKnown) this.#instances[at] = instance;
      const { service } = instance;
      const address = await listening(service).catch(() => null);
      if (address !== null) {
        instance.address = address;
        this.#instances[at] = instance;
        void service.ended.then(({ code, signal, stderr }) => {
          if (!instance.isKilled) this.#failure ??= new Error(`an instance ended with ${signal ?? code}: ${stderr}`);
        });
        return;
      }
      const { stderr } = await service.ended;
      if (!stderr.includes(UNREACHABLE) || !this.server.wasAway(since))
        throw new Error(`an instance did not start: ${stderr}`);
      this.vainStarts++;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
