import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { AmbitError } from "../api/errors.ts";
import { canonicalJson, type JsonObject } from "../api/json.ts";
import { type CallPolicy, defaultCallPolicy } from "../catalogue/call-policy.ts";
import { type Authenticate, type Caller, serviceAccountCaller } from "../catalogue/caller.ts";
import { type Catalogue, createCatalogue } from "../catalogue/catalogue.ts";
import { dispatchToHost, type HostDispatcher } from "../catalogue/dispatch.ts";
import type { Journal } from "../catalogue/journal.ts";
import { type CatalogueChange, type CatalogueId, CatalogueState, type ComponentKey, type LiveGrant } from "../catalogue/state.ts";
import type { CallTracing } from "../catalogue/tracing.ts";
import { componentName } from "../grants/granted-tool.ts";
import { loadManifests } from "../manifests/load.ts";
import type { Problem } from "../manifests/problem.ts";
import type { Manifest, ReadManifests } from "../manifests/read.ts";
import type { ScrapedMetrics } from "../telemetry/prometheus.ts";
import { serveTelemetry, type TelemetryPlace, type TelemetryServer } from "../telemetry/server.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { decide, type JudgedGrant, liveGrant, type Plan } from "./desired.ts";
import { type FolderWatch, watchFolder } from "./folder-watch.ts";
import { type GivenFolders, withGivenFaults } from "./given-folders.ts";
import { type FleetEvent, HostFleet } from "./host-fleet.ts";
import { hostPlaces } from "./host-places.ts";
import { Listings } from "./listings.ts";
import { ComponentObserver, type FetchComponent, seenComponent, type WorkloadObservation } from "./observe.ts";
import { OperatorKeys } from "./operator-keys.ts";
import { everyoneIs, fixedTokens } from "./tokens.ts";
import { LocalVolumes } from "./volumes.ts";

/** A group that only the local developer is in; it is added to each grant that names anybody (docs/adr/0004). */
const developerGroup = "ambit:local-developer";
const developer: Caller = { user: "ambit:local-developer", groups: [developerGroup], namespace: null };

/** A fault that may pass, such as a registry that does not answer, is looked at again after this. */
const retryMs = 5_000;

/** A component that does not tell its tools for so long keeps the others waiting no longer; it is judged again when it does. */
const listPatienceMs = 5_000;

export interface LocalSettings {
  readonly folder: string;
  readonly port: number;
  /** Bearer token of the developer; null takes everyone on loopback for the developer. */
  readonly developerToken: string | null;
  readonly agents: readonly { readonly namespace: string; readonly name: string; readonly token: string }[];
  readonly claims: ReadonlyMap<string, string>;
  readonly given: GivenFolders;
  readonly hostOverrides: Readonly<Record<string, string>>;
  readonly privateRanges: readonly string[];
  /** What is decided about callers; the developer is told why a call was refused in any case. */
  readonly policy?: CallPolicy;
  /** For what was compiled and for claims without a folder of their own. */
  readonly cacheFolder: string;
}

/** What a run tells its command; nothing of it is an argument or a result of a call. */
export type RuntimeEvent =
  | { readonly kind: "listening" | "telemetry"; readonly url: string }
  | { readonly kind: "settled"; readonly summary: Summary; readonly isFirst: boolean }
  | { readonly kind: "claim-folder-made"; readonly claim: string; readonly folder: string }
  | { readonly kind: "host"; readonly event: FleetEvent }
  | { readonly kind: "fault"; readonly error: unknown };

/** What is true after the manifests were looked at. */
export interface Summary {
  readonly problems: readonly Problem[];
  readonly plan: Plan;
}

export interface RuntimeDeps {
  readonly fetchComponent: FetchComponent;
  readonly journal: Journal;
  readonly tell: (event: RuntimeEvent) => void;
  readonly now: () => number;
  readonly monotonic: () => number;
  /** Metrics, and where they are served together with the probes. */
  readonly telemetry?: { readonly metrics: ScrapedMetrics; readonly place: TelemetryPlace };
  /** Makes spans of requests and calls. */
  readonly tracing?: CallTracing;
}

/** A grant that is to be offered, and the component that its tool is of. */
interface OfferedGrant {
  readonly of: ComponentKey;
  readonly change: CatalogueChange;
}

/**
 * All of Ambit on one machine: a folder of manifests in, a catalogue on loopback out. Each look at the folder gathers, decides, applies and tells; a
 * change that comes meanwhile causes exactly one more look. What did not change is not touched.
 */
export class LocalRuntime {
  readonly #settings: LocalSettings;
  readonly #deps: RuntimeDeps;
  readonly #state = new CatalogueState();
  readonly #dispatcher: HostDispatcher = dispatchToHost();
  readonly #keys: OperatorKeys;
  readonly #volumes: LocalVolumes;
  readonly #observer: ComponentObserver;
  readonly #fleet: HostFleet;
  readonly #listings = new Listings();
  readonly #catalogue: Catalogue;
  readonly #published = new Map<CatalogueId, string>();
  readonly #namespaces = new Map<string, string>();
  #telemetry: TelemetryServer | undefined;
  #watch: FolderWatch | undefined;
  #rotation: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #hasLooked = false;
  #isClosed = false;

  constructor(settings: LocalSettings, deps: RuntimeDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.#keys = new OperatorKeys(deps.now);
    this.#volumes = new LocalVolumes(settings.claims, settings.cacheFolder);
    this.#observer = new ComponentObserver(deps.fetchComponent);
    this.#fleet = new HostFleet({
      keys: this.#keys,
      listed: (key, digest, listing) => {
        this.#listings.set(key, digest, listing);
        this.#lookAgain = true;
        if (this.#hasLooked) void this.look();
      },
      place: hostPlaces(this.#volumes, settings.given, settings.cacheFolder, (claim, folder) =>
        deps.tell({ kind: "claim-folder-made", claim, folder }),
      ),
      hostOverrides: settings.hostOverrides,
      privateRanges: settings.privateRanges,
      publish: (changes) => this.#state.apply(changes),
      listPatienceMs,
      tell: (event) => deps.tell({ kind: "host", event }),
      monotonic: deps.monotonic,
    });
    this.#catalogue = createCatalogue(
      {
        state: this.#state,
        authenticate: authenticatorOf(settings),
        signer: () => this.#keys.signer,
        dispatch: this.#dispatcher.dispatch,
        journal: deps.journal,
        now: deps.now,
        monotonic: deps.monotonic,
        random: (bytes) => randomBytes(bytes),
        isReady: () => this.#hasLooked,
        ...(deps.telemetry && { metrics: deps.telemetry.metrics }),
        ...(deps.tracing && { tracing: deps.tracing }),
        report: (error) => deps.tell({ kind: "fault", error }),
      },
      { hosts: ["localhost", "127.0.0.1", "[::1]"], policy: policyOf(settings) },
    );
  }

  /** Listens, looks at the folder once, and follows its changes. Throws `Stalled` `AddressInUse`, `Invalid` `NoSuchFolder`. */
  async start(): Promise<AddressInfo> {
    await mkdir(this.#settings.cacheFolder, { recursive: true });
    await this.#serveTelemetry();
    const address = await this.#catalogue.listen("127.0.0.1", this.#settings.port);
    this.#deps.tell({ kind: "listening", url: `http://${address.address}:${address.port}` });
    // Developers belong to no namespace, and see what every namespace grants.
    this.#state.apply([{ kind: "namespace", name: "", acceptsGrantsFrom: "*" }]);
    this.#watch = watchFolder(
      this.#settings.folder,
      () => void this.look(),
      (error) => this.#deps.tell({ kind: "fault", error }),
    );
    await this.look();
    this.#rotation = setInterval(() => void this.#fleet.rotateKeys(), this.#keys.rotateEveryMs);
    return address;
  }

  /** Looks at the folder now. Resolves when what it says holds, or has failed once. */
  async look(): Promise<void> {
    if (this.#isClosed) return;
    this.#lookAgain = true;
    this.#looking ??= this.#lookWhileAsked().finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
  }

  hostProcessIds(): number[] {
    return this.#fleet.processIds();
  }

  /** Ends the calls under way, the hosts and the watch. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#rotation);
    await this.#catalogue.close();
    await this.#fleet.close();
    // A look under way sets a watch and a timer at its end; whoever asked for it hears how it went.
    await this.#looking?.catch(() => undefined);
    this.#watch?.close();
    clearTimeout(this.#retry);
    await this.#dispatcher.close();
    await this.#volumes.close();
    await this.#telemetry?.close();
  }

  async #serveTelemetry(): Promise<void> {
    const { telemetry, tell } = this.#deps;
    if (!telemetry) return;
    const report = (error: unknown): void => tell({ kind: "fault", error });
    const isReady = (): boolean => this.#hasLooked && !this.#isClosed;
    this.#telemetry = await serveTelemetry(telemetry.place, { metrics: telemetry.metrics, isReady, report });
    const { address, port } = this.#telemetry.address;
    tell({ kind: "telemetry", url: `http://${address}:${port}/metrics` });
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#lookAgain && !this.#isClosed) {
      this.#lookAgain = false;
      try {
        await this.#lookOnce();
      } catch (error) {
        // The first look is the command's to report; a later one must not end what is being served.
        if (!this.#hasLooked || !(error instanceof AmbitError)) throw error;
        this.#deps.tell({ kind: "fault", error });
      }
    }
  }

  async #lookOnce(): Promise<void> {
    const { manifests, workloads } = await this.#gather();
    const plan = decide({ workloads: this.#listings.addTo(workloads), grants: ofKind(manifests.objects, "ToolGrant"), assertUsableSchema });
    await this.#apply(plan, manifests);
    // What a component lists is known only now, where its host started just now.
    if (this.#lookAgain && !this.#hasLooked) return;
    this.#summarise(plan, manifests, workloads);
  }

  async #gather(): Promise<{ manifests: ReadManifests; workloads: WorkloadObservation[] }> {
    const manifests = await loadManifests(this.#settings.folder, { assertUsableSchema });
    const observed = await this.#observer.observe(ofKind(manifests.objects, "Workload"));
    return { manifests, workloads: await withGivenFaults(observed, this.#settings.given, "all") };
  }

  /** Withdraws before it changes hosts, and offers after: at no moment is a tool offered whose code or reach was not approved. */
  async #apply(plan: Plan, manifests: ReadManifests): Promise<void> {
    const { withdrawn, offered } = this.#grantChanges(plan.grants);
    const namespaces = this.#namespaceChanges(ofKind(manifests.objects, "Namespace").map(({ object }) => object));
    this.#state.apply([...namespaces, ...withdrawn]);
    const hosts = this.#fleet.apply(plan.hosts);
    // Until then a host of before serves, which may touch more than this grant allows.
    const offering = offered.map(async ({ of, change }) => {
      await (this.#hasLooked ? this.#fleet.brought(of) : hosts);
      this.#state.apply([change]);
    });
    await Promise.all([hosts, ...offering]);
  }

  #summarise(plan: Plan, { problems }: ReadManifests, workloads: readonly WorkloadObservation[]): void {
    const isFirst = !this.#hasLooked;
    this.#hasLooked = true;
    const seen = workloads.flatMap(({ components }) => [...components.values()].map(seenComponent));
    this.#watch?.alsoWatch(seen.flatMap((one) => (one?.file ? [one.file] : [])));
    clearTimeout(this.#retry);
    if (plan.components.some(({ fault }) => fault?.passing)) this.#retry = setTimeout(() => void this.look(), retryMs);
    this.#deps.tell({ kind: "settled", summary: { problems, plan }, isFirst });
  }

  #grantChanges(grants: readonly JudgedGrant[]): { withdrawn: CatalogueChange[]; offered: OfferedGrant[] } {
    const withdrawn: CatalogueChange[] = [];
    const offered: OfferedGrant[] = [];
    const live = new Map<CatalogueId, LiveGrant>();
    for (const judged of grants) {
      const grant = liveGrant(judged, [{ kind: "Group", name: developerGroup }]);
      if (grant) live.set(`${grant.namespace}/${grant.name}`, grant);
    }
    for (const id of this.#published.keys()) {
      if (live.has(id)) continue;
      this.#published.delete(id);
      withdrawn.push({ kind: "grant-withdrawn", id });
    }
    for (const [id, grant] of live) {
      const { spec, definition, components } = grant;
      const print = canonicalJson({ spec: spec as unknown as JsonObject, definition, components });
      if (this.#published.get(id) === print) continue;
      this.#published.set(id, print);
      const { workload } = spec.tool;
      const of = { namespace: grant.namespace, workload, component: componentName(spec.tool) };
      offered.push({ of, change: { kind: "grant", grant } });
    }
    return { withdrawn, offered };
  }

  #namespaceChanges(
    namespaces: readonly { readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> } }[],
  ): CatalogueChange[] {
    const now = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.annotations?.["ambit.dev/accepts-grants-from"] ?? ""]));
    const changes: CatalogueChange[] = [];
    for (const name of this.#namespaces.keys()) {
      if (now.has(name)) continue;
      this.#namespaces.delete(name);
      changes.push({ kind: "namespace", name, acceptsGrantsFrom: null });
    }
    for (const [name, text] of now) {
      if (this.#namespaces.get(name) === text) continue;
      this.#namespaces.set(name, text);
      changes.push({ kind: "namespace", name, acceptsGrantsFrom: text === "" ? null : text });
    }
    return changes;
  }
}

const policyOf = ({ policy = defaultCallPolicy }: LocalSettings): CallPolicy => ({
  ...policy,
  explainsTo: (caller) => caller.user === developer.user || policy.explainsTo(caller),
});

const authenticatorOf = ({ developerToken, agents }: LocalSettings): Authenticate => {
  if (developerToken === null) return everyoneIs(developer);
  const callers = new Map<string, Caller>([[developerToken, developer]]);
  for (const { namespace, name, token } of agents) callers.set(token, serviceAccountCaller(namespace, name));
  return fixedTokens(callers);
};

const ofKind = <K extends Manifest["kind"]>(objects: readonly Manifest[], kind: K): Extract<Manifest, { kind: K }>[] =>
  objects.filter((object): object is Extract<Manifest, { kind: K }> => object.kind === kind);
