import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { sha256Of } from "../../../src/api/digest.ts";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import { defaultHostLimits, type HostConfig } from "../../../src/api/host.ts";
import { serviceAccountCaller } from "../../../src/catalogue/caller.ts";
import { createCatalogue } from "../../../src/catalogue/catalogue.ts";
import { type Dispatch, dispatchToHost } from "../../../src/catalogue/dispatch.ts";
import { defaultServerLimits } from "../../../src/catalogue/server.ts";
import { CatalogueState, type LiveGrant } from "../../../src/catalogue/state.ts";
import { declarationOf } from "../../../src/declaration/declaration.ts";
import { definitionDigest } from "../../../src/grants/definition.ts";
import { grantDigest } from "../../../src/grants/grant-digest.ts";
import { startHostProcess } from "../../../src/local/host-process.ts";
import { OperatorKeys } from "../../../src/local/operator-keys.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";

/**
 * A catalogue before a real host, in a process of its own that can be flooded and looked at: under the limits that it has in use, but for shorter times. Its tool `echo` is granted to
 * `attacker` and to `neighbour`, whose tokens are their names. Tells on its IPC channel where it and its host are, each ticket with its bytes, faults, and on request what it holds.
 */
export type EdgeReport =
  | { readonly kind: "listening"; readonly port: number; readonly hostUrl: string }
  | { readonly kind: "sent"; readonly ticket: string; readonly body: string }
  | { readonly kind: "fault"; readonly message: string }
  | { readonly kind: "holds"; readonly connections: number; readonly megabytes: number };

export const times = { headersMs: 2_000, requestMs: 6_000, unreadMs: 3_000 } as const;

const component = { namespace: "agents", workload: "hostile", component: "hostile" } as const;

const serve = async (cacheFolder: string): Promise<void> => {
  const tell = (report: EdgeReport): void => void process.send?.(report);
  const bytes = await readFile(new URL("../../fixtures/components/hostile.wasm", import.meta.url));
  const code = sha256Of(bytes);
  const fn = decodeComponent(bytes).functions.find(({ name }) => name === "echo");
  if (!fn) throw new Error("the component exports no echo");
  const keys = new OperatorKeys(Date.now);
  const config: HostConfig = {
    component: code,
    rootKey: keys.rootPublicKey,
    podUid: "pod-of-the-test",
    listen: { address: "127.0.0.1", port: 0 },
    transport: "http",
    allowedHosts: [],
    resolver: "system",
    hostOverrides: {},
    environment: {},
    mounts: [],
    limits: defaultHostLimits,
    callsPerInstance: 1,
    cacheFolder,
  };
  const deliveries = {
    keys: (boot: string) => keys.keySetFor(boot),
    component: async () => bytes,
    listingRequest: keys.listingRequestFor.bind(keys),
  };
  const host = await startHostProcess(config, deliveries, { line: () => undefined }, new AbortController().signal);
  const spec: ToolGrantSpec = {
    tool: { workload: "hostile", component: "hostile", interface: fn.interface ?? "", function: fn.name },
    declaration: { ...declarationOf(fn) },
    subjects: ["attacker", "neighbour"].map((name) => ({ kind: "ServiceAccount", name, namespace: "agents" })),
    mutates: false,
    egressCeiling: "Internal",
  };
  const grant: LiveGrant = {
    namespace: "agents",
    name: "echo",
    spec,
    grant: grantDigest(spec),
    definition: definitionDigest(fn),
    components: [code],
    fn,
  };
  const state = new CatalogueState();
  state.apply([
    { kind: "endpoints", of: component, endpoints: [host.endpoint] },
    { kind: "grant", grant },
  ]);
  const { dispatch, close } = dispatchToHost();
  const telling: Dispatch = (endpoint, ticket, body) => {
    tell({ kind: "sent", ticket, body: Buffer.from(body).toString("utf8") });
    return dispatch(endpoint, ticket, body);
  };
  const catalogue = createCatalogue(
    {
      state,
      authenticate: async (token) => (token === "attacker" || token === "neighbour" ? serviceAccountCaller("agents", token) : null),
      signer: () => keys.signer,
      dispatch: telling,
      journal: () => undefined,
      now: Date.now,
      monotonic: () => performance.now(),
      random: (count) => randomBytes(count),
      isReady: () => true,
      report: (fault) => tell({ kind: "fault", message: String(fault) }),
    },
    { hosts: ["localhost"], limits: { ...defaultServerLimits, ...times } },
  );
  process.on("message", () => {
    catalogue.server.getConnections((_error, connections) => {
      tell({ kind: "holds", connections, megabytes: process.memoryUsage().rss / 1024 / 1024 });
    });
  });
  process.once("disconnect", async () => {
    catalogue.server.closeAllConnections();
    await catalogue.close();
    await close();
    await host.stop();
    process.exit(0);
  });
  const { port } = await catalogue.listen("127.0.0.1", 0);
  tell({ kind: "listening", port, hostUrl: host.endpoint.url });
};

if (import.meta.main) await serve(process.argv[2] ?? "");
