import { type Ended, launch } from "./launch.js";
import { type Commands, commandsIn } from "./own-directories.js";

/** Runs `memprefix` in processes; whatever still runs after a test is killed. */
export function processes(): Commands<Ended, NodeJS.Signals> {
  return commandsIn<Ended, NodeJS.Signals>((args, environment) => {
    const { child, ended, printed, stderr } = launch(args, environment);
    child.stdin.end();
    return {
      kill: (signal) => void child.kill(signal),
      printed,
      get stderr() {
        return stderr();
      },
      ended,
    };
  }, "SIGKILL");
}
