import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { checkDatabase } from "../store/checked-database.js";
import { type Launched, type LaunchOptions, launch, listening } from "./launch.js";
import { processes } from "./memprefix-process.js";

/** Somebody with no rights at all: tests may run as root, who may write everywhere. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Whether `command` does what it says here; containers forbid some. */
function works(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args).status === 0;
}

const canMount = works("unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt");
const canBeNobody = !isRoot || readableByAll(resolve(import.meta.dirname, "../../dist/cli/main.js"));

function readableByAll(file: string): boolean {
  const readable = spawnSync(process.execPath, ["-e", `require("fs").accessSync(${JSON.stringify(file)})`], {
    uid: NOBODY,
    gid: NOBODY,
  });
  return readable.status === 0;
}

describe("a disk that does not play along", () => {
  const memprefix = processes();
  const started: Launched[] = [];
  afterEach(async () => {
    for (const { child, ended } of started.splice(0)) {
      child.kill("SIGKILL");
      await ended;
    }
  });

  const environment = (dataDir: string) => ({
    PATH: process.env["PATH"] ?? "",
    HOME: memprefix.root,
    MEMPREFIX_DATA_DIR: dataDir,
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_LOG_LEVEL: "error",
  });
  async function serve(dataDir: string, options: LaunchOptions = {}, more: Readonly<Record<string, string>> = {}) {
    const service = launch(["serve"], { ...environment(dataDir), ...more }, options);
    started.push(service);
    return { address: await listening(service), pid: service.child.pid ?? 0, stderr: service.stderr };
  }

  const memories = (n: number) =>
    [n, n + 1, n * 3].map((id) => ({ id: `m-${id}`, memory: `Fact ${id}. ${"It is long. ".repeat(100)}` }));
  const body = (n: number) => ({
    user_id: "ada",
    request_id: `r-${n}`,
    conversation_id: "c",
    messages: Array.from({ length: 2 * n + 1 }, (_, at) =>
      at % 2 === 0 ? { role: "user", content: `Question ${at / 2}` } : { role: "assistant", content: "Yes." },
    ),
    memories: memories(n),
  });
  async function send(address: string, path: string, sent?: unknown) {
    const answer = await fetch(address + path, {
      method: sent === undefined ? "GET" : "POST",
      ...(sent === undefined ? {} : { body: JSON.stringify(sent), headers: { "content-type": "application/json" } }),
    });
    return {
      status: answer.status,
      retryAfter: answer.headers.get("retry-after"),
      type: answer.headers.get("content-type"),
      text: await answer.text(),
    };
  }

  /** What a service on a sound disk answers to the same requests. */
  async function soundAnswers(upTo: number): Promise<string[]> {
    const { address } = await serve(join(memprefix.root, "sound"));
    const answers: string[] = [];
    for (let n = 0; n < upTo; n++) answers.push((await send(address, "/compose", body(n))).text);
    return answers;
  }

  /** Composes until the disk refuses; gives back how many were answered, and the refusal. */
  async function composeUntilRefused(address: string, sound: readonly string[]) {
    for (const [n, text] of sound.entries()) {
      const answer = await send(address, "/compose", body(n));
      if (answer.status !== 200) return { answered: n, refusal: answer };
      expect(answer.text === text, `request ${n}`).toBe(true);
    }
    throw new Error("the disk never refused");
  }

  const TURNS = 16;

  it.skipIf(!canMount)(
    `that is full is a 507 that says so, loses nothing, and once there is room all is as if nothing had been${canMount ? "" : " (skipped: a file system cannot be mounted here)"}`,
    async () => {
      const sound = await soundAnswers(TURNS);
      const disk = join(memprefix.root, "disk");
      mkdirSync(disk);
      const mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=8m none "$0" && exec "$@"', disk];
      const service = await serve(join(disk, "data"), { through: mount });
      const inside = join(`/proc/${service.pid}/root`, disk);
      for (let n = 0; n < 4; n++) expect((await send(service.address, "/compose", body(n))).text).toBe(sound[n]);
      const ballast = join(inside, "ballast");
      fill(ballast);
      const { answered, refusal } = await composeUntilRefused(service.address, sound);
      expect(refusal).toMatchObject({ status: 507, type: "application/problem+json", retryAfter: "30" });
      expect(JSON.parse(refusal.text)).toEqual({
        type: "about:blank",
        title: "No room",
        status: 507,
        detail: "the disk is full",
      });
      expect(service.stderr()).toContain("the disk is full");
      // What was answered before can still be had, and nothing is stored of what was not.
      for (let n = 0; n < answered; n++) expect((await send(service.address, "/compose", body(n))).text).toBe(sound[n]);
      expect((await send(service.address, "/compose", body(answered))).status).toBe(507);
      expect((await send(service.address, "/healthz")).status).toBe(200);
      rmSync(ballast);
      for (let n = answered; n < TURNS; n++)
        expect((await send(service.address, "/compose", body(n))).text === sound[n], `request ${n}`).toBe(true);
      // SQLite would look for the file outside of what is mounted.
      const copy = join(memprefix.root, "copy.db");
      for (const end of ["", "-wal"]) copyFileSync(join(inside, "data", `memprefix.db${end}`), `${copy}${end}`);
      expect(await checkDatabase(copy)).toMatchObject({ findings: [], requests: TURNS });
    },
  );

  it("is said in a line when nothing can be opened, without a change to what is there", async () => {
    mkdirSync(memprefix.dataDir);
    writeFileSync(join(memprefix.dataDir, "memprefix.db"), "this is somebody's letter, and no database at all");
    const refused = await memprefix.run(["serve"], { environment: { MEMPREFIX_SOURCE: "none" } });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toBe(
      `memprefix: cannot open the database ${join(memprefix.dataDir, "memprefix.db")}: it is not a database, or its beginning is damaged\n`,
    );
    expect(readFileSync(join(memprefix.dataDir, "memprefix.db"), "utf8")).toMatch(/^this is somebody's letter/);
  });

  describe.skipIf(!canBeNobody)(
    `that may only be read${canBeNobody ? "" : " (skipped: the build cannot be read by somebody without rights)"}`,
    () => {
      const owner: LaunchOptions = isRoot ? { uid: NOBODY } : {};
      async function refused(dataDir: string): Promise<string> {
        const service = launch(["serve"], { ...environment(dataDir), HOME: "/" }, owner);
        started.push(service);
        const { code, stderr } = await service.ended;
        expect(code).toBe(1);
        return stderr;
      }
      async function answeredOnce(): Promise<string> {
        openTo(memprefix.root);
        const service = await memprefix.serve();
        expect((await send(service.address, "/compose", body(0))).status).toBe(200);
        service.kill("SIGTERM");
        await service.ended;
        if (isRoot)
          for (const path of [memprefix.dataDir, join(memprefix.dataDir, "memprefix.db")])
            chownSync(path, NOBODY, NOBODY);
        return memprefix.dataDir;
      }

      it("because of the file: is refused at the start", async () => {
        const dataDir = await answeredOnce();
        const file = join(dataDir, "memprefix.db");
        chmodSync(file, 0o444);
        const before = readFileSync(file);
        expect(await refused(dataDir)).toContain(`${file}: it cannot be written`);
        expect(readFileSync(file).equals(before)).toBe(true);
        chmodSync(file, 0o644);
        expect(await checkDatabase(file)).toMatchObject({ findings: [], requests: 1 });
      });
    },
  );
});

function openTo(directory: string): void {
  chmodSync(directory, 0o755);
  accessSync(dirname(directory), constants.X_OK);
}

function fill(file: string): void {
  for (const size of [64 * 1_024, 4_096, 1]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: "a" });
    } catch (error) {
      expect(error).toMatchObject({ code: "ENOSPC" });
    }
  }
}
