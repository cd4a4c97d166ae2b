import { isSha256Digest, type Sha256Digest } from "../../api/digest.ts";
import { AmbitError, Transient, Waiting } from "../../api/errors.ts";
import type { GrantedTool } from "../../api/generated/toolgrant.ts";
import type { WorkloadComponent } from "../../api/generated/workload.ts";
import type { Observed, ObservedCode, Reason } from "../../grants/judge.ts";
import { reachOf } from "../../grants/reach.ts";
import { findOffered, offeredFunctions } from "../../wit/offered.ts";
import type { ComponentStore, StoredComponent } from "../component-store.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "../kinds.ts";
import { podAnnotations } from "../names.ts";

/** The far side of a grant. `passing` is present where it may become known without an event. */
export interface FarSide {
  readonly observed: Observed;
  /** Where each observed code is, by its sha256. */
  readonly images: ReadonlyMap<Sha256Digest, string>;
  readonly passing?: Reason;
}

/** Where components come from, and what they turned out to be. */
export interface ComponentReader {
  readonly components: ComponentStore;
  /** By the sha256 of their bytes, images that pods may still run: remembered while this process lives. */
  readonly images: Map<Sha256Digest, string>;
}

/** Images that are remembered. */
const imagesKept = 4096;

/**
 * What is true now of the tool that a grant names: first of the code that the Workload names, then of other code that ready pods still run, as during a rollout. `pods` are
 * those of the component.
 *
 * Never rejects for what an image or a registry does: that is in the result.
 */
export const observeTool = async (
  reader: ComponentReader,
  { spec: { tool }, status }: Pick<ClusterToolGrant, "spec" | "status">,
  workload: ClusterWorkload | undefined,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<FarSide> => {
  if (!workload || workload.metadata.deletionTimestamp !== undefined)
    return absent("WorkloadMissing", `there is no Workload ${tool.workload} in this namespace`);
  if (workload.spec.suspend) return absent("Suspended", `the Workload ${tool.workload} is suspended`);
  const component = workload.spec.components.find(({ name }) => name === tool.component);
  if (!component) return absent("ComponentMissing", `the Workload ${tool.workload} has no component ${tool.component}`);
  try {
    const named = await reader.components.fetch(workload, component, signal);
    remember(reader, named);
    const found = [named];
    for (const digest of otherCode(pods, named.digest)) {
      // What a process before this one observed is in the status.
      const image = reader.images.get(digest) ?? (status?.observed?.component === digest ? status.observed.image : undefined);
      const older = image === undefined ? null : await olderCode(reader, workload, { ...component, image }, signal);
      if (older?.digest === digest) found.push(older);
    }
    return {
      observed: { codes: found.map((stored) => codeOf(workload, component, stored, tool)) },
      images: new Map(found.map(({ digest, resolved }) => [digest, resolved])),
    };
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof AmbitError)) throw thrown;
    const reason = { code: thrown.code, message: `${tool.workload}/${tool.component}: ${thrown.message}` };
    const isPassing = thrown instanceof Transient || thrown instanceof Waiting;
    return { ...absent(reason.code, reason.message), ...(isPassing ? { passing: reason } : {}) };
  }
};

const absent = (code: string, message: string): FarSide => ({
  observed: { codes: [], absent: { code, message } },
  images: new Map(),
});

const codeOf = (workload: ClusterWorkload, component: WorkloadComponent, stored: StoredComponent, tool: GrantedTool): ObservedCode => ({
  digest: stored.digest,
  reach: reachOf(workload.spec, component.name, stored.interface.imports),
  ...findOffered(offeredFunctions(stored.interface, component.tools?.exclude ?? []), tool),
});

const otherCode = (pods: readonly Pod[], named: Sha256Digest): Sha256Digest[] => {
  const running = pods.filter(isReady).map(({ metadata }) => metadata.annotations?.[podAnnotations.delivered] ?? "");
  return [...new Set(running)].filter(isSha256Digest).filter((digest) => digest !== named);
};

/** Ready, and not on its way out. */
export const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && (status?.conditions ?? []).some(({ type, status: is }) => type === "Ready" && is === "True");

/** Code that the Workload named before. Null where it can't be read any more: then nothing is approved for it. */
const olderCode = async (
  { components }: ComponentReader,
  workload: ClusterWorkload,
  component: WorkloadComponent,
  signal: AbortSignal,
): Promise<StoredComponent | null> => {
  try {
    return await components.fetch(workload, component, signal);
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
