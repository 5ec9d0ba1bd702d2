import { afterEach, beforeEach } from "vitest";
import { type Ended, type Environment, launch, listening } from "./launch.js";
import { type Begun, type Commands, OwnDirectories, SERVES } from "./own-directories.js";

/** Runs `memprefix` in processes; whatever still runs after a test is killed. */
export function processes(): Commands<Ended, NodeJS.Signals> {
  const own = new OwnDirectories();
  const running = new Set<ReturnType<typeof launch>>();

  beforeEach(() => own.make());
  afterEach(async () => {
    for (const { child, ended } of running) {
      child.kill("SIGKILL");
      await ended;
    }
    running.clear();
    own.remove();
  });

  const start = (args: readonly string[], environment: Environment) => {
    const started = launch(args, { ...own.environment, ...environment });
    running.add(started);
    void started.ended.then(() => running.delete(started));
    return started;
  };
  const begun = ({ child, ended, printed, stderr }: ReturnType<typeof launch>): Begun<Ended, NodeJS.Signals> => ({
    kill: (signal) => void child.kill(signal),
    printed,
    get stderr() {
      return stderr();
    },
    ended,
  });

  return {
    get root() {
      return own.root;
    },
    get dataDir() {
      return own.dataDir;
    },
    get leftBehind() {
      return own.leftBehind;
    },
    run(args, { input = "", environment = {} } = {}) {
      const { child, ended } = start(args, environment);
      child.stdin.on("error", () => {});
      child.stdin.end(input);
      return ended;
    },
    begin: (args, environment = {}) => begun(start(args, environment)),
    async serve(environment = {}) {
      const service = begun(start(["serve"], { ...SERVES, ...environment }));
      return Object.assign(service, { address: await listening(service) });
    },
  };
}
