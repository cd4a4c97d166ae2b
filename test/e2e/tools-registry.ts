import { spawn } from "node:child_process";
import { once } from "node:events";
import type { BuiltInNode } from "../cluster/start-node.ts";
import { pushArtifact, wasmArtifact } from "../registry/push.ts";

const name = "registry.example.com";
const port = 5000;

/** Where it is in the node's world. */
export const registryAddress = "20.10.0.5";

/** The names by which registries are found there: whoever sets other names of the world sets these too. */
export const registryNames = { [name]: [registryAddress], "liar.example.com": ["20.10.0.6"] };

/** As it stands in image references. It speaks plain HTTP, as does the other, which a test may start. */
export const toolsRegistry = `${name}:${port}`;
export const lyingRegistry = `liar.example.com:${port}`;
export const toolsRegistryPort = port;

/** A registry in the node's world, where the operator finds it as it would find any on the internet: by name, and past its NetworkPolicy. */
export interface ToolsRegistry extends AsyncDisposable {
  /** Puts a component there and gives its image, by digest. */
  push(repository: string, component: Uint8Array): Promise<string>;
}

export const serveTools = async ({ world, program, tunnelTo }: BuiltInNode): Promise<ToolsRegistry> => {
  await world.addAddress(registryAddress);
  await world.setNames(registryNames);
  const serve = [program("go-containerregistry", "crane"), "registry", "serve", "--address", `${registryAddress}:${port}`];
  const [file = "", ...args] = [...world.command, ...serve];
  const child = spawn(file, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  await once(child.stderr, "data");
  child.stderr.resume();
  return {
    push: async (repository, component) => {
      await using tunnel = await tunnelTo(`${registryAddress}:${port}`);
      const digest = await pushArtifact({ registry: `localhost:${tunnel.port}`, repository }, "v1", wasmArtifact(component));
      return `${toolsRegistry}/${repository}@${digest}`;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
      await world.removeAddress(registryAddress);
    },
  };
};
