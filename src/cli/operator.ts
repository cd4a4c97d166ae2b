import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { parse } from "yaml";
import { AmbitError, messageOf } from "../api/errors.ts";
import { readEgressSettings } from "../operator/egress/read-settings.ts";
import { type OperatorSettings, privateNetworks, runOperator } from "../operator/main.ts";
import { type ClusterProcessOptions, runInCluster } from "./cluster-process.ts";
import { cacheFolderOf } from "./component-source.ts";
import type { Terminal } from "./terminal.ts";

export interface OperatorOptions extends ClusterProcessOptions {
  readonly namespace: string;
  readonly image: string;
  readonly imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly imagePullSecret: readonly string[];
  readonly cache?: string;
  readonly plainHttpRegistry: readonly string[];
  readonly egressSettings?: string;
  readonly requireNetworkPolicy?: boolean;
}

/** Runs a replica of the operator until it is asked to end. Everything it says is a JSON line on standard output. */
export const operator = async (terminal: Terminal, options: OperatorOptions): Promise<void> => {
  const log = ({ message, ...rest }: { readonly message: string }): void =>
    terminal.out(`${JSON.stringify({ time: new Date(terminal.now()).toISOString(), message, ...rest }, readable)}\n`);
  await runInCluster("ambit-operator", options, async (surroundings, asked) =>
    runOperator(await settingsOf(terminal, options), { ...surroundings, log }, asked),
  );
};

const settingsOf = async (terminal: Terminal, options: OperatorOptions): Promise<OperatorSettings> => ({
  namespace: options.namespace,
  instance: terminal.env.AMBIT_POD_NAME ?? hostname(),
  host: { image: options.image, pullPolicy: options.imagePullPolicy, pullSecrets: options.imagePullSecret },
  cacheFolder: cacheFolderOf(terminal, options.cache),
  plainHttpRegistries: options.plainHttpRegistry,
  registryRanges: privateNetworks,
  ...(options.egressSettings === undefined
    ? {}
    : { egress: readEgressSettings(parse(await readFile(options.egressSettings, "utf8")), options.namespace) }),
  canary: apiServerPlace(terminal.env),
  requireEnforcement: options.requireNetworkPolicy === true,
});

/** The API server's Service, as every pod is told of it: it always answers, and no sandbox may reach it. */
const apiServerPlace = ({
  KUBERNETES_SERVICE_HOST: address,
  KUBERNETES_SERVICE_PORT: port,
}: Terminal["env"]): OperatorSettings["canary"] => (address && port ? { address, port: Number(port) } : null);

/** Errors have nothing that JSON would show by itself. */
const readable = (_: string, value: unknown): unknown =>
  value instanceof Error
    ? { error: messageOf(value), ...(value instanceof AmbitError ? { code: value.code } : { stack: value.stack }) }
    : value;
