import { once } from "node:events";
import type { Server } from "node:http";
import { Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { Stalled } from "../api/errors.ts";
import type { MetricsRegistry } from "../kube/metrics.ts";
import { Admission, type AdmissionDeps } from "./admission.ts";
import { Allowances } from "./allowance.ts";
import { BodyBudget } from "./body-budget.ts";
import { countedDispatch, countedJournal } from "./call-metrics.ts";
import { type CallPolicy, defaultCallPolicy } from "./call-policy.ts";
import type { Authenticate, Caller } from "./caller.ts";
import { type Counters, ProcessCounters } from "./counters.ts";
import { DeclarationLists } from "./declarations.ts";
import { callJudge } from "./judge.ts";
import type { McpParts } from "./mcp/endpoint.ts";
import { Sessions } from "./mcp/sessions.ts";
import { ToolLists } from "./mcp/tool-list.ts";
import { OfferBook } from "./offers.ts";
import { pooledRandom } from "./pooled-random.ts";
import { countRequests } from "./request-metrics.ts";
import { ToolSearch } from "./search.ts";
import { withSearchTool } from "./search-tool.ts";
import { catalogueServer, defaultServerLimits, type ServerLimits } from "./server.ts";
import type { CatalogueState } from "./state.ts";
import type { CallTracing } from "./tracing.ts";
import { defaultWatchLimits, Watches, type WatchLimits } from "./watch.ts";

/** What a catalogue is made of: the rules, which are pure, and its edges. */
export interface CatalogueDeps extends Omit<AdmissionDeps, "judge" | "allowances"> {
  readonly authenticate: Authenticate;
  readonly isReady: () => boolean;
  /** What callers use is counted here; without it in this process, as if there were no other replica. */
  readonly counters?: Counters;
  /** What requests and calls are counted in; without it they aren't. */
  readonly metrics?: MetricsRegistry;
  /** Makes spans of requests and calls; without it there are none. */
  readonly tracing?: CallTracing;
}

export interface CatalogueConfig {
  /** Names that `Host` may hold besides the address that a request came to; no port. */
  readonly hosts: readonly string[];
  /** Values that `Origin` may hold: none, unless web pages are meant to call. */
  readonly origins?: readonly string[];
  /** What the installation decides about callers. */
  readonly policy?: CallPolicy;
  /** Callers who are told why a call was refused: operators. By default those whom the policy names. */
  readonly explainsTo?: (caller: Caller) => boolean;
  readonly limits?: ServerLimits;
  readonly watchLimits?: WatchLimits;
  /** Certificate and key; without them, plain HTTP. */
  readonly tls?: SecureContextOptions;
}

export interface Catalogue {
  readonly server: Server | TlsServer;
  /** Shows another certificate from the next connection on. Of no effect on plain HTTP. */
  renewTls(tls: SecureContextOptions): void;
  /** Listens and gives the address; port 0 takes a free one. Throws `Stalled` `AddressInUse` where another process listens there. */
  listen(address: string, port: number): Promise<AddressInfo>;
  /** Takes no more requests, ends the watches, and waits for the calls under way. */
  close(): Promise<void>;
}

/** The catalogue's HTTP server: docs/catalogue.md says what it answers. */
export const createCatalogue = ({ metrics, tracing, ...given }: CatalogueDeps, config: CatalogueConfig): Catalogue => {
  const deps = { ...given, random: pooledRandom(given.random) };
  const { policy = defaultCallPolicy, limits = defaultServerLimits, explainsTo = policy.explainsTo } = config;
  const { report } = deps;
  const watches = new Watches(deps.state, config.watchLimits ?? defaultWatchLimits);
  const offers = new OfferBook(deps.state);
  const bodies = new BodyBudget(limits.heldBodyBytes);
  const lists = new DeclarationLists();
  const search = new ToolSearch(deps.state);
  const admissionDeps: AdmissionDeps = {
    ...deps,
    ...(metrics && { dispatch: countedDispatch(metrics, deps.dispatch), journal: countedJournal(metrics, deps.journal) }),
    judge: callJudge(policy),
    withOwnTools: (offered, { name, format = "neutral" }) => withSearchTool(offered, { name, format }, { search, lists }),
    allowances: new Allowances(deps.counters ?? new ProcessCounters(deps.monotonic), policy.denials),
  };
  const admission = tracing ? tracing.admission(admissionDeps) : new Admission(admissionDeps);
  const mcp: McpParts = {
    offers,
    lists: new ToolLists(),
    sessions: new Sessions(deps),
    admission,
    watches,
    bodies,
    bodyBytes: limits.bodyBytes,
    explainsTo,
    report,
  };
  const server = catalogueServer({
    authenticate: deps.authenticate,
    offers,
    lists,
    search,
    watches,
    bodies,
    admission,
    mcp,
    guard: { hosts: new Set(config.hosts.map((host) => host.toLowerCase())), origins: new Set(config.origins ?? []) },
    isReady: deps.isReady,
    explainsTo,
    report,
    limits,
    ...(config.tls === undefined ? {} : { tls: config.tls }),
  });
  if (metrics) {
    countRequests(server, { metrics, monotonic: deps.monotonic });
    gaugeState(metrics, deps.state);
  }
  tracing?.follow(server);
  return {
    server,
    renewTls: (tls) => {
      if (server instanceof TlsServer) server.setSecureContext({ ...tls, minVersion: "TLSv1.2" });
    },
    listen: async (address, port) => {
      server.listen(port, address);
      await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
        throw listenError(error, address, port);
      });
      const bound = server.address();
      if (bound === null || typeof bound === "string") throw new Error("a listening TCP server has an address and a port");
      return bound;
    },
    close: () =>
      new Promise((resolve, reject) => {
        watches.close();
        if (!server.listening) return resolve();
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeIdleConnections();
      }),
  };
};

/** How much the catalogue knows. */
const gaugeState = (metrics: MetricsRegistry, state: CatalogueState): void => {
  const grants = metrics.gauge({
    name: "ambit_live_grants",
    help: "Grants that this replica offers to whom they name.",
    labels: [],
    collect: () => grants.set({}, state.size),
  });
};

const listenError = (error: NodeJS.ErrnoException, address: string, port: number): Error =>
  error.code === "EADDRINUSE"
    ? new Stalled("AddressInUse", `another process listens at ${address} port ${port}; end it or choose another port`, { cause: error })
    : error;
