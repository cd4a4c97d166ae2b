import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Ground } from "./ground.ts";

/** Prints which of the targets a TCP connection can be made to, and whether a name server answers by UDP. */
const probe = `
  const { connect } = require("node:net");
  const reach = (target) => new Promise((resolve) => {
    if (target.startsWith("udp:")) {
      const socket = require("node:dgram").createSocket("udp4");
      const end = (reached) => { clearTimeout(timer); socket.close(); resolve(reached); };
      const timer = setTimeout(end, 2000, false);
      socket.on("message", () => end(true)).on("error", () => end(false));
      // The root's name servers.
      const query = Buffer.from([7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
      const [, host, port] = target.split(":");
      socket.send(query, Number(port), host);
      return;
    }
    const [host, port] = target.split(":");
    const socket = connect({ host, port: Number(port), timeout: 2000 });
    const end = (reached) => { resolve(reached); socket.destroy(); };
    socket.on("connect", () => end(true)).on("timeout", () => end(false)).on("error", () => end(false));
  });
  Promise.all(process.argv.slice(1).map(async (target) => [target, await reach(target)]))
    .then((all) => console.log(JSON.stringify(Object.fromEntries(all))));`;

/** Which of the targets (`ADDRESS:PORT`, or `udp:ADDRESS:PORT` of a name server) a process reaches that runs in the network of a pod, in the ground's namespace or another one, past its container and whatever Ambit's host heeds. */
export const reachedFromPod = async (
  ground: Ground,
  pod: string,
  targets: readonly string[],
  namespace = ground.namespace,
): Promise<Record<string, boolean>> => reached(await ground.node.commandInPod(namespace, pod), targets);

/** The same from the world around the node. */
export const reachedFromWorld = (ground: Ground, targets: readonly string[]): Promise<Record<string, boolean>> =>
  reached(ground.node.world.command, targets);

const reached = async ([file = "", ...args]: readonly string[], targets: readonly string[]): Promise<Record<string, boolean>> => {
  const { stdout } = await promisify(execFile)(file, [...args, process.execPath, "-e", probe, "--", ...targets]);
  return JSON.parse(stdout);
};
