import { ambitNamespace } from "../api/cluster-names.ts";
import { messageOf } from "../api/errors.ts";
import { type ClusterCatalogueSettings, runClusterCatalogue } from "../catalogue/cluster-catalogue.ts";
import { loadAccess } from "../kube/access.ts";
import { ClusterClient } from "../kube/client.ts";
import { systemClock } from "../kube/clock.ts";
import { telemetryAt, tracingAsked } from "./telemetry.ts";
import type { Terminal } from "./terminal.ts";

export interface CatalogueOptions {
  readonly address: string;
  readonly port: number;
  readonly namespace?: string;
  readonly host: readonly string[];
  readonly audience: string;
  readonly plainHttp?: boolean;
  readonly telemetryPort?: number;
  readonly kubeconfig?: string;
}

/** Runs a replica of the catalogue until it is asked to end. Everything it says is a JSON line on standard output, the journal's among them. */
export const catalogue = async (terminal: Terminal, options: CatalogueOptions): Promise<void> => {
  const print = (line: object): void => terminal.out(`${JSON.stringify(line)}\n`);
  const access = await loadAccess(options.kubeconfig === undefined ? {} : { file: options.kubeconfig });
  const telemetry = await telemetryAt(options.telemetryPort, "::");
  const surroundings = { clock: systemClock, random: Math.random };
  const client = new ClusterClient({
    ...surroundings,
    access,
    userAgent: "ambit-catalogue",
    ...(telemetry && { metrics: telemetry.metrics }),
  });
  const fault = (thrown: unknown): void => print({ time: timeOf(terminal), event: "fault", what: "traces", message: messageOf(thrown) });
  const traces = await tracingAsked(terminal, fault);
  const asked = new AbortController();
  const stop = (): void => asked.abort();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  try {
    await runClusterCatalogue(
      settingsOf(options),
      {
        ...surroundings,
        client,
        ...(telemetry && { telemetry }),
        ...(traces.tracing && { tracing: traces.tracing }),
        journal: print,
        tell: ({ kind, ...rest }) => print({ time: timeOf(terminal), event: kind, ...rest }),
      },
      asked.signal,
    );
  } finally {
    process.removeListener("SIGTERM", stop);
    process.removeListener("SIGINT", stop);
    await client.close();
    await traces.close();
  }
};

const timeOf = ({ now }: Terminal): string => new Date(now()).toISOString();

const settingsOf = ({
  address,
  port,
  namespace = ambitNamespace,
  host,
  audience,
  plainHttp = false,
}: CatalogueOptions): ClusterCatalogueSettings => ({ address, port, namespace, hosts: host, audience, plainHttp });
