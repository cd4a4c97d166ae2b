import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { inNamespace } from "./network.ts";
import { relay } from "./relay.ts";

/** A port of this machine's loopback that leads to an address in a node's network: a pod's, a Service's. */
export interface Tunnel extends AsyncDisposable {
  readonly port: number;
}

/** Opens one to `HOST:PORT`. `folder` is where the socket between the two networks is. */
export const openTunnel = async (namespace: string, folder: string, target: string): Promise<Tunnel> => {
  const socket = join(folder, `tunnel-${randomBytes(4).toString("hex")}.sock`);
  const forward = join(import.meta.dirname, "forward.ts");
  const [file, ...args] = [...inNamespace(namespace), process.execPath, forward, "--listen", socket, "--to", target];
  const there = spawn(file ?? "", args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(there, "exit");
  await Promise.race([
    once(there.stdout, "data"),
    exited.then(([code]) => Promise.reject(new Error(`the tunnel to ${target} ended with ${code}`))),
  ]);
  const here = relay(socket);
  const open = new Set<Socket>();
  here.on("connection", (client: Socket) => {
    open.add(client);
    client.on("close", () => open.delete(client));
  });
  here.listen(0, "127.0.0.1");
  await once(here, "listening");
  const address = here.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    [Symbol.asyncDispose]: async () => {
      here.close();
      for (const end of open) end.destroy();
      there.kill();
      await exited;
      await rm(socket, { force: true });
    },
  };
};
