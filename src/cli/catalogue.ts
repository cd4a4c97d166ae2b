import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { ambitNamespace } from "../api/cluster-names.ts";
import { Invalid, messageOf } from "../api/errors.ts";
import { type ClusterCatalogueSettings, runClusterCatalogue } from "../catalogue/cluster-catalogue.ts";
import type { CounterStore } from "../catalogue/store-counters.ts";
import { callPolicyIn } from "./call-policy.ts";
import { type ClusterProcessOptions, runInCluster } from "./cluster-process.ts";
import { tracingAsked } from "./telemetry.ts";
import type { Terminal } from "./terminal.ts";

export interface CatalogueOptions extends ClusterProcessOptions {
  readonly address: string;
  readonly port: number;
  readonly namespace?: string;
  readonly host: readonly string[];
  readonly audience: string;
  readonly plainHttp?: boolean;
  readonly callPolicy?: string;
  readonly counterStore?: string;
  readonly counterStorePasswordFile?: string;
  readonly counterStoreCa?: string;
}

/** Runs a replica of the catalogue until it is asked to end. Everything it says is a JSON line on standard output, the journal's among them. */
export const catalogue = async (terminal: Terminal, options: CatalogueOptions): Promise<void> => {
  const print = (line: object): void => terminal.out(`${JSON.stringify(line)}\n`);
  const fault = (thrown: unknown): void => print({ time: timeOf(terminal), event: "fault", what: "traces", message: messageOf(thrown) });
  const traces = await tracingAsked(terminal, fault);
  try {
    await runInCluster("ambit-catalogue", options, async (surroundings, asked) =>
      runClusterCatalogue(
        await settingsOf(terminal, options),
        {
          ...surroundings,
          ...(traces.tracing && { tracing: traces.tracing }),
          journal: print,
          tell: ({ kind, ...rest }) => print({ time: timeOf(terminal), event: kind, ...rest }),
        },
        asked,
      ),
    );
  } finally {
    await traces.close();
  }
};

const timeOf = ({ now }: Terminal): string => new Date(now()).toISOString();

const settingsOf = async (terminal: Terminal, options: CatalogueOptions): Promise<ClusterCatalogueSettings> => {
  const { address, port, namespace = ambitNamespace, host, audience, plainHttp = false, callPolicy } = options;
  const counterStore = await counterStoreOf(options);
  return {
    address,
    port,
    namespace,
    hosts: host,
    audience,
    plainHttp,
    instance: terminal.env.AMBIT_POD_NAME ?? hostname(),
    ...(callPolicy !== undefined && { policy: await callPolicyIn(callPolicy) }),
    ...(counterStore && { counterStore }),
  };
};

const counterStoreOf = async (options: CatalogueOptions): Promise<CounterStore | null> => {
  const { counterStore: url, counterStorePasswordFile: passwordFile, counterStoreCa: caFile } = options;
  if (url === undefined) return null;
  return {
    ...placeOf(url),
    ...(passwordFile !== undefined && { password: (await readFile(passwordFile, "utf8")).trim() }),
    ...(caFile !== undefined && { ca: await readFile(caFile, "utf8") }),
  };
};

/** A password in it would be in every listing of processes. */
const placeOf = (text: string): Pick<CounterStore, "url" | "username"> => {
  const url = URL.parse(text);
  if (url === null || !["redis:", "rediss:"].includes(url.protocol) || url.hostname === "" || url.password !== "") {
    throw new Invalid(
      "CounterStoreInvalid",
      "--counter-store takes redis://[USER@]HOST:PORT or rediss://…; its password comes from --counter-store-password-file",
    );
  }
  const username = decodeURIComponent(url.username);
  url.username = "";
  return { url: url.href, ...(username !== "" && { username }) };
};
