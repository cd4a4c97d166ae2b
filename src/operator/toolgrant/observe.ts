import { isSha256Digest, type Sha256Digest } from "../../api/digest.ts";
import { AmbitError, Invalid, Transient, Waiting } from "../../api/errors.ts";
import type { GrantedTool } from "../../api/generated/toolgrant.ts";
import type { WitImport } from "../../api/wit.ts";
import { digestOfDefinitionText } from "../../grants/definition.ts";
import { toolOfDefinition } from "../../grants/definition-function.ts";
import { componentName, findTool, missingComponentText } from "../../grants/granted-tool.ts";
import type { Observed, ObservedCode, Reason } from "../../grants/judge.ts";
import { reachOf, reachWithin, readPodReach } from "../../grants/reach.ts";
import { componentOfTool, type SandboxedComponent, serverOf } from "../../grants/sandboxed-component.ts";
import { abortScope } from "../../kube/abort-scope.ts";
import type { Clock } from "../../kube/clock.ts";
import type { ComponentStore, StoredComponent } from "../component-store.ts";
import { workloadVersion } from "../judged.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "../kinds.ts";
import { podAnnotations } from "../names.ts";
import { offeringOf, type ToolListings } from "../tool-listings.ts";

/** The far side of a grant. `passing` is present where it may become known without an event. */
export interface FarSide {
  readonly observed: Observed;
  /** Where each observed code is, by its sha256. */
  readonly images: ReadonlyMap<Sha256Digest, string>;
  /** The Workload that it was observed under, as `workloadVersion` gives it. */
  readonly workload?: string;
  readonly passing?: Reason & { readonly retryAfterMs: number };
}

/** Pods of the Workload that count for a tool. */
export interface ToolPods {
  /** Of its component; of the bridge, where it is an MCP server's. */
  readonly own: readonly Pod[];
  /** Of the component that such a server is. */
  readonly server: readonly Pod[];
}

/** Where components come from, and what they turned out to be. */
export interface ComponentReader {
  readonly components: ComponentStore;
  readonly clock: Clock;
  readonly listings: ToolListings;
  /** By the sha256 of their bytes, images that pods may still run: remembered while this process lives. */
  readonly images: Map<Sha256Digest, string>;
}

/**
 * How long a component is waited for. Pulls go on meanwhile and are asked for again; but a grant that is to be withdrawn must not wait behind those of registries that hang.
 */
const patienceMs = 300;
const askAgainMs = 1_000;
const retryMs = 15_000;

/** Images that are remembered. */
const imagesKept = 4096;

/**
 * What is true now of the tool that a grant names: first of the code that the Workload names, then of other code that ready pods still run, as during a rollout. Behind a bridge
 * whatever code of the server runs may answer.
 *
 * Never rejects for what an image or a registry does: that is in the result.
 */
export const observeTool = async (
  reader: ComponentReader,
  grant: ClusterToolGrant,
  workload: ClusterWorkload | undefined,
  pods: ToolPods,
  signal: AbortSignal,
): Promise<FarSide> => {
  const { tool } = grant.spec;
  if (!workload || workload.metadata.deletionTimestamp !== undefined)
    return absent("WorkloadMissing", `there is no Workload ${tool.workload} in this namespace`);
  if (workload.spec.suspend) return absent("Suspended", `the Workload ${tool.workload} is suspended`);
  const component = componentOfTool(workload.spec, tool);
  if (!component) return absent("ComponentMissing", missingComponentText(tool));
  try {
    const named = await fetchSoon(reader, workload, component, signal);
    remember(reader, named);
    const side = { workload, component, behind: await behindBridge(reader, workload, component, signal) };
    const code = codeOf(reader.listings, side, named, tool);
    const others = await runningCode(reader, grant, side, otherCode(pods.own, named.digest), signal);
    const codes = withServers(code ? [code, ...others.codes] : others.codes, pods.server);
    const images = new Map([[named.digest, named.resolved], ...others.images]);
    if (codes.length === 0) throw new Waiting("NotListed", "no host has told yet which tools the component lists", retryMs);
    return {
      observed: { codes },
      images,
      workload: workloadVersion(workload),
    };
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof AmbitError)) throw thrown;
    const reason = { code: thrown.code, message: `${tool.workload}/${componentName(tool)}: ${thrown.message}` };
    if (!(thrown instanceof Transient || thrown instanceof Waiting)) return absent(reason.code, reason.message);
    const passing = { ...reason, retryAfterMs: thrown instanceof Waiting ? thrown.retryAfterMs : retryMs };
    const known = asObserved(grant, workload) ?? (await stillRunning(reader, grant, workload, component, pods.own, signal));
    if (known === null) return { ...absent(reason.code, reason.message), passing };
    return { ...known, observed: { ...known.observed, codes: withServers(known.observed.codes, pods.server) }, passing };
  }
};

/**
 * What was observed before, where nothing changed since: a registry that is away when the operator starts anew withdraws no tool whose pods serve. The definition proves itself
 * by its digest, and nobody but the operator writes statuses.
 */
const asObserved = ({ metadata, status }: ClusterToolGrant, workload: ClusterWorkload): FarSide | null => {
  const { digest, text, component, code, reach, workload: under } = status?.observed ?? {};
  if (under !== workloadVersion(workload) || text === undefined || reach === undefined) return null;
  if (component === undefined || !isSha256Digest(component) || digestOfDefinitionText(text) !== digest) return null;
  try {
    const fn = toolOfDefinition(text);
    // All code that was approved has the one definition. That its reach is within the review was judged, by the same review, and is not told for each.
    const approved = status?.observedGeneration === metadata.generation ? (status?.components ?? []).filter(isSha256Digest) : [];
    const codes = [...new Set([component, ...approved])].map((of) => ({ digest: of, ...(isCode(code) && { code }), reach, fn }));
    const images = (status?.images ?? []).flatMap(({ component: of, image }) => (isSha256Digest(of) ? [[of, image] as const] : []));
    return { observed: { codes }, images: new Map(images), workload: under };
  } catch (thrown) {
    if (thrown instanceof Invalid) return null;
    throw thrown;
  }
};

/**
 * Of a Workload whose code can't be read yet, the code that ready pods run: a pull that takes its time withdraws no tool that serves. It is judged under the reach that the Workload gives now. No
 * version of the Workload goes with it, so that what it names is held until it was judged itself.
 */
const stillRunning = async (
  reader: ComponentReader,
  grant: ClusterToolGrant,
  workload: ClusterWorkload,
  component: SandboxedComponent,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<FarSide | null> => {
  // What is behind a bridge and can't be read has no reach that could be judged.
  if (component.bridge?.kind === "component") return null;
  const side = { workload, component, behind: await behindBridge(reader, workload, component, signal) };
  const { codes, images } = await runningCode(reader, grant, side, otherCode(pods, null), signal);
  return codes.length > 0 ? { observed: { codes }, images: new Map(images) } : null;
};

/** The same tools again for each code that pods of their server have and the Workload doesn't name, and for what pods were made to touch that the Workload doesn't say. */
const withServers = (codes: readonly ObservedCode[], pods: readonly Pod[]): ObservedCode[] => {
  const serving = pods.flatMap(({ metadata: { annotations = {}, deletionTimestamp } }) => {
    const delivered = annotations[podAnnotations.delivered] ?? "";
    if (deletionTimestamp !== undefined || !isSha256Digest(delivered)) return [];
    return [{ delivered, reach: annotations[podAnnotations.reach] ?? "" }];
  });
  const kinds = [...new Map(serving.map((pod) => [JSON.stringify(pod), pod])).values()];
  return codes.flatMap((code) => [
    code,
    ...kinds.flatMap(({ delivered, reach: text }) => {
      const reach = { ...(readPodReach(text) ?? code.reach), imports: code.reach.imports };
      const isNamed = delivered === code.code && reachWithin(reach, code.reach).length === 0;
      return isNamed ? [] : [{ ...code, code: delivered, reach }];
    }),
  ]);
};

const isCode = (code: string | undefined): code is Sha256Digest | "any" => code === "any" || (code !== undefined && isSha256Digest(code));

/** The component of a tool, and what answers where that is a bridge. */
interface ToolSide {
  readonly workload: ClusterWorkload;
  readonly component: SandboxedComponent;
  readonly behind: { readonly code: Sha256Digest | "any"; readonly imports: readonly WitImport[] } | null;
}

/** Null for a component that answers itself. Throws as `fetchSoon` does where the server is a component. */
const behindBridge = async (
  reader: ComponentReader,
  workload: ClusterWorkload,
  component: SandboxedComponent,
  signal: AbortSignal,
): Promise<ToolSide["behind"]> => {
  if (component.bridge === undefined) return null;
  const server = serverOf(workload.spec, component);
  if (server === undefined) return { code: "any", imports: [] };
  const { digest, interface: described } = await fetchSoon(reader, workload, server, signal);
  return { code: digest, imports: described.imports };
};

/** What is true of the tool in code that pods run and the Workload doesn't name, and the images of that code. */
const runningCode = async (
  reader: ComponentReader,
  grant: ClusterToolGrant,
  side: ToolSide,
  digests: readonly Sha256Digest[],
  signal: AbortSignal,
): Promise<{ codes: ObservedCode[]; images: [Sha256Digest, string][] }> => {
  const codes: ObservedCode[] = [];
  const images: [Sha256Digest, string][] = [];
  const { workload, component } = side;
  for (const digest of digests) {
    // What a process before this one observed is in the status.
    const image = reader.images.get(digest) ?? grant.status?.images?.find((known) => known.component === digest)?.image;
    const older = image === undefined ? null : await olderCode(reader, workload, { ...component, image }, signal);
    const isIt = older?.digest === digest;
    const code = isIt ? codeOf(reader.listings, side, older, grant.spec.tool) : codeBefore(grant, workload, digest);
    if (code) codes.push(code);
    if (image !== undefined && (code || isIt)) images.push([digest, image]);
  }
  return { codes, images };
};

/** Older code that can't be read now, if it was observed when nothing else was. */
const codeBefore = (grant: ClusterToolGrant, workload: ClusterWorkload, digest: Sha256Digest): ObservedCode | null =>
  asObserved(grant, workload)?.observed.codes.find((code) => code.digest === digest) ?? null;

/** Throws `Waiting` (`Pulling`) besides what `fetch` throws. */
const fetchSoon = async (
  { components, clock }: ComponentReader,
  workload: ClusterWorkload,
  component: SandboxedComponent,
  signal: AbortSignal,
): Promise<StoredComponent> => {
  const scope = abortScope(signal);
  const cancel = clock.after(patienceMs, () => scope.abort(new Waiting("Pulling", `${component.image} is being pulled`, askAgainMs)));
  try {
    return await components.fetch(workload, component, scope.signal);
  } finally {
    cancel();
    scope.release();
  }
};

const absent = (code: string, message: string): FarSide => ({
  observed: { codes: [], absent: { code, message } },
  images: new Map(),
});

/** Null while it is not known whether this code lists the tool: only a host that runs it can tell. */
const codeOf = (
  listings: ToolListings,
  { workload, component, behind }: ToolSide,
  stored: StoredComponent,
  tool: GrantedTool,
): ObservedCode | null => {
  const { namespace = "", name } = workload.metadata;
  const offering = offeringOf(stored, component, { namespace, workload: name, component: component.name }, listings);
  if (tool.tool !== undefined && offering.listing === "awaited") return null;
  const reach = reachOf(workload.spec, component.name, behind?.imports ?? stored.interface.imports);
  return { digest: stored.digest, ...(behind && { code: behind.code }), reach, ...findTool(offering, tool) };
};

const otherCode = (pods: readonly Pod[], named: Sha256Digest | null): Sha256Digest[] => {
  const running = pods.filter(isReady).map(({ metadata }) => metadata.annotations?.[podAnnotations.delivered] ?? "");
  return [...new Set(running)].filter(isSha256Digest).filter((digest) => digest !== named);
};

/** Ready, and not on its way out. */
export const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && (status?.conditions ?? []).some(({ type, status: is }) => type === "Ready" && is === "True");

/** Code that the Workload named before. Null where it can't be read any more: then nothing is approved for it. */
const olderCode = async (
  reader: ComponentReader,
  workload: ClusterWorkload,
  component: SandboxedComponent,
  signal: AbortSignal,
): Promise<StoredComponent | null> => {
  try {
    return await fetchSoon(reader, workload, component, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    // The registry may have forgotten it, or the docs that the Workload adds now don't fit it.
    if (thrown instanceof AmbitError) return null;
    throw thrown;
  }
};

const remember = ({ images }: ComponentReader, { digest, resolved }: StoredComponent): void => {
  images.delete(digest);
  images.set(digest, resolved);
  const [oldest] = images.keys();
  if (oldest !== undefined && images.size > imagesKept) images.delete(oldest);
};
