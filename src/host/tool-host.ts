import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { sha256Of } from "../api/digest.ts";
import { Invalid, Refused, Waiting } from "../api/errors.ts";
import type { CanaryAnswer, HostConfig } from "../api/host.ts";
import { incomingHandlerExport, servesNoHttp } from "../api/http-server.ts";
import { changesExport, untypedExport, untypedInterface } from "../api/untyped.ts";
import { UsedNonces } from "../tickets/nonces.ts";
import { allowedSkewMs, type TicketKey, verifyTicket } from "../tickets/ticket.ts";
import { tryCanary } from "./canary.ts";
import { ChangeWatch } from "./change-watch.ts";
import { CompiledCache } from "./compiled-cache.ts";
import { type DeliveredHop, Deliveries, ed25519PublicKey } from "./delivery.ts";
import { GivenWatch } from "./given/watch.ts";
import { ListingKeeper } from "./listing-keeper.ts";
import { loadComponent } from "./load-component.ts";
import type { ServedCall } from "./serving/served-messages.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import { type PoolReply, WorkerPool } from "./worker-pool.ts";
import type { Whereabouts, WorkerSetup } from "./worker-protocol.ts";

/** Tickets remembered at once: 1,000 calls a second for as long as a ticket lives. */
const nonceCapacity = 150_000;

/** Key sets and certificates have less. */
const unannouncedBytes = 16 * 1024;

/** How long a request for another listing may wait. */
const longestWaitMs = 25_000;

/** When a component that was not loaded for a passing reason is worth sending again. */
const retryAfterMs = 1000;

export interface ToolHostDeps {
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly log: (line: GuestLine) => void;
  readonly cores: number;
  /** With TLS: takes a certificate into use. Throws `Refused` or `Invalid` for one that is not for this host's key. */
  readonly present?: ((certificate: string) => void) | undefined;
}

/** What a host tells of itself to whoever delivers to it. */
export interface Boot {
  readonly boot: string;
  readonly component: string;
  readonly pod: string;
  /** Whether the component is here already, from before a restart. */
  readonly hasComponent: boolean;
}

/**
 * One start of a host: what it was given, and the calls it takes. Knows no HTTP.
 *
 * Until keys and the component (and an address table, where names resolve from one) have come, `missing` says what is awaited and calls are refused.
 */
export class ToolHost {
  readonly #config: HostConfig;
  readonly #deps: ToolHostDeps;
  readonly #boot = randomUUID();
  readonly #deliveries: Deliveries;
  readonly #cache: CompiledCache;
  readonly #nonces = new UsedNonces(nonceCapacity);
  #isCertified = false;
  #keys: ReadonlyMap<string, TicketKey> | undefined;
  /** Time of day minus monotonic time, by the signed time of the last key set. */
  #clockOffset = 0;
  #addresses: Extract<Whereabouts, { kind: "addresses" }> | undefined;
  #hop: DeliveredHop | undefined;
  #pool: WorkerPool | undefined;
  #listing: ListingKeeper | undefined;
  #watch: ChangeWatch | undefined;
  #given: GivenWatch | undefined;
  #loading: Promise<void> | undefined;
  #isClosing = false;

  constructor(config: HostConfig, deps: ToolHostDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#deliveries = new Deliveries(ed25519PublicKey(config.rootKey, "the root key"), this.#boot);
    this.#cache = new CompiledCache(config.cacheFolder, config.component, config.limits.memoryBytes);
  }

  get boot(): Boot {
    const { component, podUid } = this.#config;
    return { boot: this.#boot, component, pod: podUid, hasComponent: this.#pool !== undefined };
  }

  /** What must still come before calls are taken; empty when ready. */
  get missing(): readonly string[] {
    const missing: string[] = [];
    if (this.#isClosing) missing.push("shutdown");
    if (this.#deps.present !== undefined && !this.#isCertified) missing.push("certificate");
    if (this.#keys === undefined) missing.push("keys");
    if (this.#config.resolver === "table" && this.#addresses === undefined) missing.push("addresses");
    if ((this.#config.serve ?? this.#config.hop) !== undefined && this.#hop === undefined) missing.push("hop");
    if (this.#pool === undefined) missing.push("component");
    return missing;
  }

  /** Calls in flight. */
  get running(): number {
    return this.#pool?.running ?? 0;
  }

  /** Loads the component if its bytes lie in the cache from before a restart. */
  async resume(): Promise<void> {
    const bytes = await this.#cache.readComponent();
    if (bytes !== undefined) await this.#load(bytes);
  }

  takeCertificate(document: unknown): void {
    const certificate = this.#deliveries.takeCertificate(document);
    if (this.#deps.present === undefined) throw new Refused("NotOverTls", "this host speaks plain HTTP and has no use for a certificate");
    this.#deps.present(certificate);
    this.#isCertified = true;
  }

  takeKeys(document: unknown): void {
    const { keys, time } = this.#deliveries.takeKeys(document);
    this.#keys = keys;
    this.#clockOffset = time - this.#deps.now();
  }

  takeAddresses(document: unknown): void {
    this.#addresses = { kind: "addresses", table: this.#deliveries.takeAddresses(document) };
    this.#pool?.tell(this.#addresses);
    this.#watch?.tell(this.#addresses);
  }

  /** Throws `Refused` (`HasNoHop`, `DeliveryMisdirected`) for a hop that this host is no end of, and what deliveries throw. */
  takeHop(document: unknown): void {
    const { serve, hop } = this.#config;
    if (serve === undefined && hop === undefined) throw new Refused("HasNoHop", "this host is neither an MCP server's nor its bridge's");
    const taken = this.#deliveries.takeHop(document);
    if ((serve !== undefined && taken.accept === undefined) || taken.reach?.authority !== hop?.authority)
      throw new Refused("DeliveryMisdirected", "the hop is another host's");
    this.#hop = taken;
    if (taken.reach === undefined) return;
    this.#pool?.tell({ kind: "hop", reach: taken.reach });
    this.#watch?.tell({ kind: "hop", reach: taken.reach });
    // Another pod of the server may have other tools.
    this.#listing?.refresh();
  }

  /** What requests to an MCP server may show. */
  get acceptedHops(): readonly string[] {
    return this.#hop?.accept ?? [];
  }

  /** Runs one request to an MCP server whose credential was accepted; not if `signal` aborts before its turn. */
  serve(call: ServedCall, signal: AbortSignal): Promise<PoolReply> {
    if (this.#pool === undefined) throw new Waiting("NotReady", `the host still waits for: ${this.missing.join(", ")}`, retryAfterMs);
    return this.#pool.run(call, signal);
  }

  /** A line of the host's own, for its log. */
  say(text: string): void {
    this.#deps.log({ stream: "host", text, cut: false });
  }

  /** Whether the pod reaches what it must not. */
  tryCanary(document: unknown): Promise<CanaryAnswer> {
    return tryCanary(this.#deliveries.takeCanary(document));
  }

  /** Takes exactly the bytes that this host was started for. Throws `Refused` with code `DigestMismatch`, and what `loadComponent` throws. */
  async takeComponent(bytes: Uint8Array): Promise<void> {
    const digest = sha256Of(bytes);
    if (digest !== this.#config.component) {
      throw new Refused("DigestMismatch", `the bytes are ${digest}, and this host runs only ${this.#config.component}`);
    }
    if (this.#pool !== undefined) return;
    await this.#load(bytes, () => this.#cache.writeComponent(bytes));
  }

  /** How many bytes may be read for a request to `path`: over TLS few, unless more are announced under the root key. Throws as deliveries do. */
  readable(path: string, announcement: string | undefined): number {
    if (this.#deps.present === undefined) return Number.POSITIVE_INFINITY;
    if (announcement === undefined) return unannouncedBytes;
    return this.#deliveries.takeAnnouncement(announcementIn(announcement), path);
  }

  /** Runs one call; `read` gives its body, which is not read for a ticket that does not hold. Throws `Refused` or `Invalid` where nothing ran and nothing was used up but the ticket. */
  async call(ticket: string | undefined, read: () => Promise<Buffer>): Promise<PoolReply> {
    const pool = this.#pool;
    if (this.#config.serve !== undefined)
      throw new Refused("ServesOnly", "this host is an MCP server's: it takes requests from its bridge, and no calls");
    if (pool === undefined || this.#keys === undefined || this.missing.length > 0) {
      throw new Waiting("NotReady", `the host still waits for: ${this.missing.join(", ")}`, retryAfterMs);
    }
    const now = this.#deps.now() + this.#clockOffset;
    const { component, podUid } = this.#config;
    const claims = verifyTicket(ticket, this.#keys, { component, pod: podUid, boot: this.#boot }, now);
    const body = await read();
    if (claims.body !== sha256Of(body)) throw new Refused("TicketBodyMismatch", "the ticket is for other arguments");
    this.#nonces.use(claims.nonce, claims.exp + allowedSkewMs, this.#deps.now() + this.#clockOffset);
    if (!isUtf8(body)) throw new Invalid("JsonNotUtf8", "the arguments are not UTF-8");
    const text = body.toString("utf8");
    if (claims.interface !== untypedInterface) {
      return pool.run({ kind: "call", interface: claims.interface, function: claims.function, arguments: text });
    }
    const listed = this.#listedTools();
    await listed.begun();
    const { inputSchema } = listed.callable(claims.function, claims.definition);
    const ran = await pool.run({ kind: "call-tool", name: claims.function, arguments: text, inputSchema });
    if (ran.reply.kind === "failed" && ran.reply.code === "ToolGone") this.#listing?.refresh();
    return ran;
  }

  /** Which tools the component lists, as JSON of `ListingAnswer`. Throws `Refused` (`ListsNoTools`) where its functions are all there is. */
  async listing(document: unknown): Promise<string> {
    const { known, waitMs } = this.#deliveries.takeListingRequest(document);
    if (this.#pool === undefined) throw new Waiting("NotReady", `the host still waits for: ${this.missing.join(", ")}`, retryAfterMs);
    return this.#listedTools().answer(known, Math.min(waitMs, longestWaitMs));
  }

  #listedTools(): ListingKeeper {
    if (this.#listing !== undefined) return this.#listing;
    throw new Refused("ListsNoTools", "the component does not list tools by itself");
  }

  /** Becomes unready, lets running calls finish for at most `graceMs`, then ends. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#listing?.close();
    this.#given?.close();
    await this.#watch?.close();
    await this.#pool?.close(graceMs);
  }

  /** One loading at a time: a second delivery of the same bytes waits for the first. */
  async #load(bytes: Uint8Array, afterwards: () => Promise<void> = async () => {}): Promise<void> {
    this.#loading ??= this.#startPool(bytes, afterwards).finally(() => {
      this.#loading = undefined;
    });
    await this.#loading;
  }

  async #startPool(bytes: Uint8Array, afterwards: () => Promise<void>): Promise<void> {
    const setup = await loadComponent(this.#config, this.#cache, bytes);
    if (this.#config.serve !== undefined && incomingHandlerExport(setup.component) === null)
      throw new Refused(servesNoHttp.code, servesNoHttp.message);
    const pool = new WorkerPool({ setup, now: this.#deps.now, log: this.#deps.log, cores: this.#deps.cores });
    await pool.start();
    await afterwards();
    // Only now: what came while the pool started would be told to nobody.
    for (const whereabouts of this.#whereabouts()) pool.tell(whereabouts);
    this.#pool = pool;
    this.#given = new GivenWatch(this.#config, { changed: () => this.#renew(), say: (text) => this.say(text) });
    if (untypedExport(setup.component) !== null) this.#keepListing(pool, setup);
  }

  /** Calls see by themselves that a secret is another; what may have failed by the old one is tried again. */
  #renew(): void {
    this.#watch?.renew();
    this.#listing?.refresh();
  }

  #whereabouts(): Whereabouts[] {
    const reach = this.#hop?.reach;
    return [...(this.#addresses ? [this.#addresses] : []), ...(reach ? [{ kind: "hop", reach } as const] : [])];
  }

  /** A list that can't be had holds nothing up: until there is one, only calls to its tools are refused. */
  #keepListing(pool: WorkerPool, setup: WorkerSetup): void {
    const { now, log } = this.#deps;
    const listing = new ListingKeeper({ list: (cursor) => pool.run({ kind: "list-tools", cursor }), now });
    this.#listing = listing;
    listing.refresh();
    if (changesExport(setup.component) === null) return;
    this.#watch = new ChangeWatch({ setup, log, now, changed: () => listing.refresh() });
    for (const whereabouts of this.#whereabouts()) this.#watch.tell(whereabouts);
    this.#watch.start();
  }
}

const announcementIn = (header: string): unknown => {
  try {
    return JSON.parse(Buffer.from(header, "base64url").toString("utf8"));
  } catch (error) {
    throw new Invalid("DeliveryMalformed", "the announcement is not JSON in base64url", undefined, { cause: error });
  }
};
