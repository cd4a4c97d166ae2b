import { spawn } from "node:child_process";
import { once } from "node:events";
import type { BuiltInNode } from "../cluster/start-node.ts";
import { pushArtifact, wasmArtifact } from "../registry/push.ts";

const name = "registry.example.com";
const address = "20.10.0.5";
const port = 5000;

/** As it stands in image references. It speaks plain HTTP. */
export const toolsRegistry = `${name}:${port}`;
export const toolsRegistryPort = port;

/** A registry in the node's world, where the operator finds it as it would find any on the internet: by name, and past its NetworkPolicy. */
export interface ToolsRegistry extends AsyncDisposable {
  /** Puts a component there and gives its image, by digest. */
  push(repository: string, component: Uint8Array): Promise<string>;
}

export const serveTools = async ({ world, program, tunnelTo }: BuiltInNode): Promise<ToolsRegistry> => {
  await world.addAddress(address);
  await world.setNames({ [name]: [address] });
  const serve = [program("go-containerregistry", "crane"), "registry", "serve", "--address", `${address}:${port}`];
  const [file = "", ...args] = [...world.command, ...serve];
  const child = spawn(file, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  await once(child.stderr, "data");
  child.stderr.resume();
  return {
    push: async (repository, component) => {
      await using tunnel = await tunnelTo(`${address}:${port}`);
      const digest = await pushArtifact({ registry: `localhost:${tunnel.port}`, repository }, "v1", wasmArtifact(component));
      return `${toolsRegistry}/${repository}@${digest}`;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
      await world.removeAddress(address);
    },
  };
};
