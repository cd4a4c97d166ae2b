import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Sha256Digest } from "../api/digest.ts";
import { AmbitError, messageOf, Stalled } from "../api/errors.ts";
import type { HostConfig } from "../api/host.ts";
import type { ToolListing } from "../api/untyped.ts";
import { type CatalogueChange, type ComponentKey, componentKeyText } from "../catalogue/state.ts";
import type { DesiredHost } from "./desired.ts";
import { Hops } from "./hops.ts";
import { type HostProcess, type Place, startHostProcess } from "./host-process.ts";
import type { OperatorKeys } from "./operator-keys.ts";

const firstRestartMs = 250;
const lastRestartMs = 30_000;
/** A host that served for this long before it ended is restarted at once. */
const steadyMs = 60_000;

/** After a host that could not tell its component's tools. */
const listAgainMs = 5_000;

/** What a fleet tells of its hosts. */
export type FleetEvent =
  | { readonly kind: "starting" | "ready" | "stopped"; readonly key: ComponentKey; readonly pid?: number }
  | {
      readonly kind: "failed";
      readonly key: ComponentKey;
      readonly code: string;
      readonly message: string;
      readonly retryInMs: number | null;
    }
  | { readonly kind: "said"; readonly key: ComponentKey; readonly stream: string; readonly text: string };

export interface FleetDeps {
  readonly keys: OperatorKeys;
  /** Makes the folders that the host mounts, and its cache. */
  readonly place: (host: DesiredHost) => Promise<Pick<HostConfig, "mounts" | "secretFolders" | "cacheFolder">>;
  readonly hostOverrides: Readonly<Record<string, string>>;
  readonly privateRanges: readonly string[];
  readonly publish: (changes: readonly CatalogueChange[]) => void;
  /** How long `apply` waits for the first list of one component's tools; without it, as long as its host does. */
  readonly listPatienceMs?: number;
  /** A component has told its tools, anew where they are others than before. */
  readonly listed: (key: ComponentKey, component: Sha256Digest, listing: ToolListing) => void;
  readonly tell: (event: FleetEvent) => void;
  readonly monotonic: () => number;
}

interface Slot {
  desired: DesiredHost;
  running: HostProcess | null;
  /** Aborted when this slot's desire changes or ends. */
  readonly life: AbortController;
  failures: number;
}

/**
 * The child processes, one for each component, brought to what is desired: a host whose configuration is the same is left alone, another is started beside
 * the old one, which ends once the new one takes calls, and one that ends by itself comes back after a pause that grows.
 */
export class HostFleet {
  readonly #deps: FleetDeps;
  readonly #slots = new Map<string, Slot>();
  readonly #brought = new Map<string, Promise<void>>();
  readonly #stopping = new Set<Promise<void>>();
  readonly #hops = new Hops((bytes) => randomBytes(bytes));
  #isClosed = false;

  constructor(deps: FleetDeps) {
    this.#deps = deps;
  }

  /** Starts and stops what differs. Resolves when each new host is ready or has failed once. Nothing starts in a fleet that was closed. */
  async apply(hosts: readonly DesiredHost[]): Promise<void> {
    if (this.#isClosed) return;
    const wanted = new Map(hosts.map((host) => [componentKeyText(host.key), host]));
    for (const [name, slot] of this.#slots) if (!wanted.has(name)) this.#withdraw(name, slot);
    const [bridges, others] = partition([...wanted], ([, { hop }]) => hop !== null);
    const brought = new Map(others.map(([name, host]) => [name, this.#bring(name, host)]));
    // A bridge asks its server for tools as soon as it runs.
    const bridged = bridges.map(async ([name, host]) => {
      if (host.hop) await brought.get(componentKeyText(host.hop.server));
      await this.#bring(name, host);
    });
    const all = new Map([...brought, ...bridges.map(([name], at): [string, Promise<void>] => [name, bridged[at] ?? Promise.resolve()])]);
    for (const [name, one] of all) this.#brought.set(name, one);
    await Promise.all(all.values());
  }

  /** Resolves when the host that the last `apply` wants for this component serves in place of the one before, or has failed once. */
  async brought(key: ComponentKey): Promise<void> {
    await this.#brought.get(componentKeyText(key));
  }

  /** Whether a host takes calls for this component. */
  isReady(key: ComponentKey): boolean {
    return (this.#slots.get(componentKeyText(key))?.running ?? null) !== null;
  }

  processIds(): number[] {
    return [...this.#slots.values()].flatMap(({ running }) => (running ? [running.pid] : []));
  }

  async rotateKeys(): Promise<void> {
    this.#deps.keys.addKey();
    const hosts = [...this.#slots.values()].flatMap(({ running }) => (running ? [running] : []));
    await Promise.allSettled(hosts.map((host) => host.deliverKeys()));
    this.#deps.keys.retireOld();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [name, slot] of this.#slots) this.#withdraw(name, slot);
    await Promise.all(this.#stopping);
  }

  async #bring(name: string, desired: DesiredHost): Promise<void> {
    const before = this.#slots.get(name);
    if (before?.desired.fingerprint === desired.fingerprint) {
      before.desired = desired;
      return;
    }
    const slot: Slot = { desired, running: null, life: new AbortController(), failures: 0 };
    this.#slots.set(name, slot);
    before?.life.abort();
    await this.#start(name, slot);
    if (before?.running) this.#end(before.desired.key, before.running);
  }

  async #start(name: string, slot: Slot): Promise<void> {
    const { key } = slot.desired;
    this.#deps.tell({ kind: "starting", key });
    try {
      const started = this.#deps.monotonic();
      const config = await this.#configFor(slot.desired);
      const host = await startHostProcess(
        config,
        {
          keys: (boot) => this.#deps.keys.keySetFor(boot),
          listingRequest: (boot, known) => this.#deps.keys.listingRequestFor(boot, known),
          component: slot.desired.bytes,
          ...(hasHop(slot.desired) && { hop: (boot: string) => this.#deps.keys.hopFor(boot, this.#hops.toldTo(slot.desired)) }),
        },
        { line: (stream, text) => this.#deps.tell({ kind: "said", key, stream, text }) },
        slot.life.signal,
      );
      if (slot.life.signal.aborted) {
        this.#end(key, host);
        return;
      }
      slot.running = host;
      await this.#placed(slot.desired, host.serving);
      this.#deps.publish([{ kind: "endpoints", of: key, endpoints: slot.desired.serves ? [] : [host.endpoint] }]);
      this.#deps.tell({ kind: "ready", key, pid: host.pid });
      void host.ended.then((how) => this.#ended(name, slot, how, started));
      if (slot.desired.listsTools) await this.#follow(slot, host);
    } catch (error) {
      if (!slot.life.signal.aborted) this.#failed(name, slot, error);
    }
  }

  /** Hears of the tools that a component lists, now and whenever they change; resolves once there is a first answer, or none for as long as others wait for it. */
  async #follow(slot: Slot, host: HostProcess): Promise<void> {
    const first = this.#hear(slot, host, null);
    void (async () => {
      let known = await first;
      while (!slot.life.signal.aborted && slot.running === host) known = await this.#hear(slot, host, known);
    })();
    const { listPatienceMs } = this.#deps;
    await (listPatienceMs === undefined ? first : Promise.race([first, pause(listPatienceMs, slot.life.signal)]));
  }

  /** Gives the digest of what was heard. */
  async #hear(slot: Slot, host: HostProcess, known: Sha256Digest | null): Promise<Sha256Digest | null> {
    const { key, component } = slot.desired;
    const { signal } = slot.life;
    try {
      const { digest, listing, fault } = await host.listing(known, signal);
      if (listing && !signal.aborted) this.#deps.listed(key, component, listing);
      if (fault) this.#deps.tell({ kind: "said", key, stream: "host", text: `${fault.code}: ${fault.message}` });
      if (digest === known && fault) await pause(listAgainMs, signal);
      return digest;
    } catch (error) {
      if (!signal.aborted && slot.running === host) this.#deps.tell({ kind: "said", key, stream: "host", text: messageOf(error) });
      await pause(listAgainMs, signal);
      return known;
    }
  }

  /** Tells a server's bridge where it is now. */
  async #placed({ key, serves }: DesiredHost, place: Place | null): Promise<void> {
    if (!serves) return;
    this.#hops.place(key, place);
    const bridges = [...this.#slots.values()].filter(
      ({ desired }) => desired.hop && componentKeyText(desired.hop.server) === componentKeyText(key),
    );
    // One that can't be told has ended, and is told when it starts anew.
    await Promise.allSettled(bridges.map(({ running }) => running?.deliverHop()));
  }

  #ended(name: string, slot: Slot, how: string, started: number): void {
    if (slot.life.signal.aborted) return;
    slot.running = null;
    void this.#placed(slot.desired, null);
    if (this.#deps.monotonic() - started > steadyMs) slot.failures = 0;
    this.#deps.publish([{ kind: "endpoints", of: slot.desired.key, endpoints: [] }]);
    this.#failed(name, slot, new AmbitError("HostEnded", `the host process ${how}`));
  }

  #failed(name: string, slot: Slot, error: unknown): void {
    const { key } = slot.desired;
    // The host judged the component itself: another start would end the same way until the manifest or the component changes.
    const isFinal = error instanceof Stalled;
    const retryInMs = isFinal ? null : Math.min(lastRestartMs, firstRestartMs * 2 ** slot.failures);
    slot.failures++;
    this.#deps.publish([{ kind: "endpoints", of: key, endpoints: [] }]);
    this.#deps.tell({
      kind: "failed",
      key,
      code: error instanceof AmbitError ? error.code : "Internal",
      message: messageOf(error),
      retryInMs,
    });
    if (retryInMs === null) return;
    const timer = setTimeout(() => void this.#start(name, slot), retryInMs);
    slot.life.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  #withdraw(name: string, slot: Slot): void {
    this.#brought.delete(name);
    this.#slots.delete(name);
    if (slot.desired.serves) this.#hops.forget(slot.desired.key);
    slot.life.abort();
    this.#deps.publish([{ kind: "endpoints", of: slot.desired.key, endpoints: [] }]);
    if (slot.running) this.#end(slot.desired.key, slot.running);
  }

  #end(key: ComponentKey, host: HostProcess): void {
    const stopped = host.stop().then(() => {
      this.#stopping.delete(stopped);
      this.#deps.tell({ kind: "stopped", key, pid: host.pid });
    });
    this.#stopping.add(stopped);
  }

  async #configFor(desired: DesiredHost): Promise<HostConfig> {
    const { component, allowedHosts, environment, limits, callsPerInstance, serves, hop } = desired;
    return {
      component,
      rootKey: this.#deps.keys.rootPublicKey,
      podUid: randomUUID(),
      listen: { address: "127.0.0.1", port: 0 },
      transport: "http",
      allowedHosts,
      resolver: "system",
      hostOverrides: this.#deps.hostOverrides,
      privateRanges: this.#deps.privateRanges,
      environment,
      limits,
      callsPerInstance,
      ...(serves && { serve: { address: "127.0.0.1", port: 0 } }),
      ...(hop && { hop: { authority: hop.authority } }),
      ...(await this.#deps.place(desired)),
    };
  }
}

const hasHop = ({ serves, hop }: DesiredHost): boolean => serves || hop !== null;

const partition = <T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] => [
  all.filter(isFirst),
  all.filter((one) => !isFirst(one)),
];

/** Resolves early where the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
