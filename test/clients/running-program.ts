import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { childOutput } from "../child-output.js";
import { endingWithUs } from "../ending-children.js";

/** Where a program stands, and how it is run. */
export interface ProgramPlace {
  /** The program's file. */
  readonly file: string;
  /** The folder in which its packages are installed. */
  readonly folder: string;
  /** The Node that runs it. */
  readonly node: string;
}

/** A program in a process of its own, which says what it is, and then does what it is asked, one after the other. */
export interface RunningProgram<Introduction, Order, Outcome> {
  readonly introduction: Introduction;
  readonly ask: (order: Order) => Promise<Outcome | { readonly error: string }>;
  readonly stop: () => Promise<void>;
}

/** Milliseconds that an order may take. */
const ORDER_MS = 60_000;

export async function startProgram<Introduction, Order extends object, Outcome>({
  file,
  folder,
  node,
}: ProgramPlace): Promise<RunningProgram<Introduction, Order, Outcome>> {
  const loader = import.meta.resolve("tsx");
  // Whatever a framework would send home, it sends to nobody.
  const quiet = { OPENAI_AGENTS_DISABLE_TRACING: "1", MEM0_TELEMETRY: "false", MASTRA_TELEMETRY_DISABLED: "1" };
  const child: ChildProcess = endingWithUs(
    spawn(node, ["--import", loader, file], {
      cwd: folder,
      env: { PATH: process.env["PATH"], ...quiet },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    }),
  );
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the program has no output");
  const output = childOutput({ stdout, stderr });
  const ended = once(child, "exit");
  const said = async (): Promise<unknown> => {
    const message = await Promise.race([once(child, "message"), ended.then(() => null)]);
    if (message === null) throw new Error(`${file} ended: ${output.stderr}`);
    return message[0];
  };
  const introduction = (await said()) as Introduction;
  const ask = async (order: Order) => {
    const outcome = said();
    child.send(order);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<{ error: string }>((done) => {
      const error = `no answer within ${ORDER_MS} ms; ${output.stderr.slice(-2_000)}`;
      timer = setTimeout(() => done({ error }), ORDER_MS);
    });
    const first = await Promise.race([outcome as Promise<Outcome>, late]);
    clearTimeout(timer);
    return first;
  };
  const stop = async () => {
    if (child.connected) child.disconnect();
    await ended;
  };
  return { introduction, ask, stop };
}
