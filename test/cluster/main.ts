import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { AmbitError, messageOf } from "../../src/api/errors.ts";
import { load } from "./containerd.ts";
import { networkOf } from "./network.ts";
import { down, kubeconfigOf, status, up } from "./node.ts";
import { defaultNodeName, nodePlaces } from "./places.ts";
import { apiTools, buildTools, nodeTools, program } from "./tools.ts";

const usage = `usage: npm run cluster -- COMMAND

  build [api|node]   builds what an API server alone or a node needs (default: node)
  up                 starts a node with everything on it, or what of it does not run
  load IMAGE_TAR     puts the images of an archive onto the node
  status             what runs
  down               ends and removes the node

  --name NAME        another node than the default one (AMBIT_CLUSTER_NAME, or "test")

Built programs and the node's files are below AMBIT_BUILD_CACHE (default: ~/.cache/ambit/cluster).
`;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const { values, positionals } = parseArgs({
  options: { name: { type: "string" }, help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});
const [command, argument] = positionals;
const places = nodePlaces(values.name ?? defaultNodeName());

const commands: Readonly<Record<string, () => Promise<void>>> = {
  build: () => buildTools(argument === "api" ? apiTools : nodeTools, say),
  up: async () => {
    await up(places, say);
    print(`export KUBECONFIG=${kubeconfigOf(places)}`);
    say(`kubectl is ${program("kubernetes", "kubectl")}; to be on the node: nsenter --net=/run/netns/${networkOf(places.name).node}`);
  },
  load: async () => {
    if (argument === undefined) throw new Error("load: which archive?");
    print((await load(places, resolve(argument))).trim());
  },
  status: async () => {
    const { daemons, ready } = await status(places);
    for (const [name, running] of Object.entries(daemons)) print(`${name}: ${running ? "running" : "ended"}`);
    print(`${places.name}: ${ready ? "ready" : "not ready"}`);
    if (!ready) process.exitCode = 1;
  },
  down: () => down(places, say),
};

const work = command === undefined ? undefined : commands[command];
if (values.help || work === undefined) {
  process.stderr.write(usage);
  process.exitCode = values.help ? 0 : 2;
} else {
  await work().catch((thrown: unknown) => {
    say(`${command}: ${thrown instanceof AmbitError ? `${thrown.code}: ` : ""}${messageOf(thrown)}`);
    process.exitCode = 1;
  });
}
