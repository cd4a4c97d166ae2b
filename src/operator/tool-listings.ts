import type { Sha256Digest } from "../api/digest.ts";
import { type ToolDefinition, type ToolListing, untypedExport, untypedInterface } from "../api/untyped.ts";
import type { ComponentInterface } from "../api/wit.ts";
import { type ComponentKey, componentKeyText } from "../catalogue/state.ts";
import { withoutExcluded } from "../grants/listing.ts";
import type { SandboxedComponent } from "../grants/sandboxed-component.ts";
import { type NotOffered, offeredFunctions } from "../wit/offered.ts";
import type { StoredComponent } from "./component-store.ts";

/** Codes of one component of which listings are remembered: those of a rollout, and one more. */
const codesKept = 3;

type OfferedFunctions = ReturnType<typeof offeredFunctions>;

/** Why a component's tools could not be listed, or not anew. */
export interface ListingFault {
  readonly code: string;
  readonly message: string;
}

/** What hosts say that their components list, by component and code, as long as this process leads. */
export class ToolListings {
  readonly #known = new Map<string, Map<Sha256Digest, ToolListing>>();
  /** By component, then by the UID of the pod whose host says so. */
  readonly #faults = new Map<string, Map<string, ListingFault>>();
  readonly #listeners = new Set<(of: ComponentKey) => void>();
  readonly #functions = new WeakMap<ComponentInterface, { readonly excluded: string; readonly found: OfferedFunctions }>();

  of(key: ComponentKey, digest: Sha256Digest): ToolListing | undefined {
    return this.#known.get(componentKeyText(key))?.get(digest);
  }

  /** What any of its codes listed last. */
  latest(key: ComponentKey): ToolListing | undefined {
    return [...(this.#known.get(componentKeyText(key))?.values() ?? [])].at(-1);
  }

  set(key: ComponentKey, digest: Sha256Digest, listing: ToolListing): void {
    const codes = this.#known.get(componentKeyText(key)) ?? new Map<Sha256Digest, ToolListing>();
    this.#known.set(componentKeyText(key), codes);
    codes.delete(digest);
    codes.set(digest, listing);
    const [oldest] = codes.keys();
    if (oldest !== undefined && codes.size > codesKept) codes.delete(oldest);
    for (const tell of this.#listeners) tell(key);
  }

  /** What one of its hosts said last went wrong. */
  faultOf(key: ComponentKey): ListingFault | undefined {
    return this.#faults.get(componentKeyText(key))?.values().next().value;
  }

  /** Null once that host has nothing to say any more, or is gone. */
  setFault(key: ComponentKey, podUid: string, fault: ListingFault | null): void {
    const name = componentKeyText(key);
    const before = this.#faults.get(name)?.get(podUid);
    if (before?.code === fault?.code && before?.message === fault?.message) return;
    const faults = this.#faults.get(name) ?? new Map<string, ListingFault>();
    this.#faults.set(name, faults);
    if (fault) faults.set(podUid, fault);
    else faults.delete(podUid);
    if (faults.size === 0) this.#faults.delete(name);
    for (const tell of this.#listeners) tell(key);
  }

  /** The functions that an interface offers, found once for all grants of a component that ask. */
  functionsOf(of: ComponentInterface, exclude: readonly string[]): OfferedFunctions {
    const excluded = JSON.stringify(exclude);
    const last = this.#functions.get(of);
    if (last?.excluded === excluded) return last.found;
    const found = offeredFunctions(of, exclude);
    this.#functions.set(of, { excluded, found });
    return found;
  }

  /** Forgets a component, or all those of a Workload, that is gone or has become another. */
  forget({ namespace, workload, component }: Pick<ComponentKey, "namespace" | "workload"> & { readonly component?: string }): void {
    const prefix = componentKeyText({ namespace, workload, component: component ?? "" });
    for (const known of [this.#known, this.#faults])
      for (const name of known.keys()) if (component === undefined ? name.startsWith(prefix) : name === prefix) known.delete(name);
  }

  /** Tells of each component that lists otherwise than before. The returned function ends that. */
  subscribe(tell: (of: ComponentKey) => void): () => void {
    this.#listeners.add(tell);
    return () => void this.#listeners.delete(tell);
  }
}

/** What a component offers: its functions, and the tools that it lists itself. */
export interface Offering {
  readonly offered: readonly ToolDefinition[];
  readonly notOffered: readonly NotOffered[];
  /** Whether it lists tools itself, and whether they are known. */
  readonly listing: "none" | "awaited" | "known";
  readonly listingFault?: ListingFault;
}

export const offeringOf = (
  stored: StoredComponent,
  { tools, serves, bridge }: Pick<SandboxedComponent, "tools" | "serves" | "bridge">,
  key: ComponentKey,
  listings: ToolListings,
): Offering => {
  const exclude = tools?.exclude ?? [];
  const { offered, notOffered } = listings.functionsOf(stored.interface, exclude);
  if (serves !== undefined) return { offered: [], notOffered: [...notOffered, ...offered.map(servedInstead(serves))], listing: "none" };
  if (untypedExport(stored.interface) === null) return { offered, notOffered, listing: "none" };
  // What a bridge lists is its server's: another Ambit's bridge has nothing else to tell.
  const known = listings.of(key, stored.digest) ?? (bridge && listings.latest(key));
  const fault = listings.faultOf(key);
  const listingFault = fault && { listingFault: fault };
  if (known === undefined) return { offered, notOffered, listing: "awaited", ...listingFault };
  const { listing } = withoutExcluded(known, exclude);
  return {
    offered: [...offered, ...listing.tools],
    notOffered: [...notOffered, ...listing.notOffered.map(({ name, reason }) => ({ interface: untypedInterface, function: name, reason }))],
    listing: "known",
    ...listingFault,
  };
};

/** A host that serves takes no calls: the tools of an MCP server are those that its bridge lists. */
const servedInstead =
  (server: string) =>
  ({ interface: of, name }: ComponentInterface["functions"][number]): NotOffered => ({
    interface: of,
    function: name,
    reason: `the component is the MCP server ${server}, whose tools are those that it lists`,
  });
