import { type ChildProcess, spawn } from "node:child_process";
import { endingWithUs, endOnSignals } from "../test/ending-children.js";

/** A child process that said where it listens. */
export interface ListeningChild {
  readonly address: string;
  readonly child: ChildProcess;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

endOnSignals();

/** Starts Node with these arguments and waits for the first address that it prints. The child ends with us, at the latest. */
export async function listeningChild(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<ListeningChild> {
  const child = endingWithUs(
    spawn(process.execPath, args, {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    let printed = "";
    child.stdout.on("data", (data) => {
      printed += String(data);
      const [found] = /http:\S+(?=\s)/.exec(printed) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`${args.join(" ")} ended with ${child.exitCode}`)));
  });
  const stop = () => {
    child.kill("SIGTERM");
    return ended;
  };
  return { address, child, stop };
}
