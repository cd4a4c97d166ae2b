import { isDeepStrictEqual } from "node:util";
import { isSha256Digest, type Sha256Digest } from "../../api/digest.ts";
import { AmbitError, Invalid, Stalled } from "../../api/errors.ts";
import type { WorkloadSpec } from "../../api/generated/workload.ts";
import { untypedExport } from "../../api/untyped.ts";
import { sandboxedComponents } from "../../grants/sandboxed-component.ts";
import { pause } from "../../kube/clock.ts";
import { keyText } from "../../kube/object.ts";
import type { OperatorContext, Runs } from "../context.ts";
import type { Pod } from "../kinds.ts";
import type { ToolListings } from "../tool-listings.ts";
import { type HostPod, hostPodOf } from "./host-pod.ts";
import { type HostPlace, openListing } from "./host-session.ts";
import type { Keyring } from "./own-keys.ts";

/** After a host that did not answer: this, twice that, and so on. */
const retryMs = { first: 1000, last: 60_000 } as const;

/** A host that answers at once with what is known already is not asked again before. */
const restMs = 1000;

export interface ListingReaderOptions {
  readonly keyring: Keyring;
  readonly listings: ToolListings;
  readonly placeOf: (pod: HostPod) => HostPlace;
}

/** Asks each host that has its component which tools that lists itself, and waits there for others: one request under way for each such pod. */
export const listingReader = (context: OperatorContext, options: ListingReaderOptions): Runs => {
  const { stores, log } = context;
  return {
    run: async (signal) => {
      const following = new Map<string, { readonly boot: string; readonly ending: AbortController }>();
      const end = (uid: string): void => {
        following.get(uid)?.ending.abort();
        following.delete(uid);
      };
      const look = (pod: Pod): void => {
        const host = hostPodOf(pod);
        const uid = pod.metadata.uid ?? "";
        const boot = host?.noted?.boot;
        if (following.get(uid)?.boot === boot) return;
        end(uid);
        if (host === undefined || boot === undefined || signal.aborted) return;
        const ending = new AbortController();
        following.set(uid, { boot, ending });
        follow(context, options, host, AbortSignal.any([signal, ending.signal])).catch((error: unknown) => {
          if (!signal.aborted && !ending.signal.aborted)
            log({ message: "asking a host for its tools failed", pod: keyText(host.key), error });
        });
      };
      const unsubscribe = stores.pods.subscribe(({ type, object }) => (type === "deleted" ? end(object.metadata.uid ?? "") : look(object)));
      const forgetting = stores.workloads.subscribe((change) => {
        const { namespace = "", name: workload } = change.object.metadata;
        if (change.type === "deleted") options.listings.forget({ namespace, workload });
        if (change.type !== "updated" || change.previous.metadata.generation === change.object.metadata.generation) return;
        for (const component of become(change.previous.spec, change.object.spec))
          options.listings.forget({ namespace, workload, component });
      });
      for (const pod of stores.pods.list()) look(pod);
      await new Promise<void>((ended) => {
        if (signal.aborted) ended();
        else signal.addEventListener("abort", () => ended(), { once: true });
      });
      unsubscribe();
      forgetting();
    },
  };
};

/** The components that are gone, and the bridges to what is another server now: another address, or another component. */
const become = (before: WorkloadSpec, now: WorkloadSpec): string[] => {
  const left = sandboxedComponents(now);
  return sandboxedComponents(before).flatMap(({ name, bridge, localResources }) => {
    const same = left.find((one) => one.name === name && (one.bridge === undefined) === (bridge === undefined));
    const isSame = same && (bridge === undefined || isDeepStrictEqual(same.localResources, localResources));
    return isSame ? [] : [name];
  });
};

const follow = async (context: OperatorContext, options: ListingReaderOptions, host: HostPod, signal: AbortSignal): Promise<void> => {
  const { clock } = context;
  const { keyring, listings, placeOf } = options;
  const digest = host.noted?.component ?? "";
  const boot = host.noted?.boot;
  if (boot === undefined || !isSha256Digest(digest) || (await hasFunctionsOnly(context, host, digest, signal))) return;
  const asking = openListing(placeOf(host), { podUid: host.uid, boot }, keyring.root, signal);
  let known: Sha256Digest | null = null;
  let failures = 0;
  try {
    while (!signal.aborted) {
      const started = clock.elapsed();
      try {
        const answer = await asking.next(known);
        failures = 0;
        if (answer.listing) listings.set(host.of, digest, answer.listing);
        listings.setFault(host.of, host.uid, answer.fault);
        const isNews = answer.digest !== known;
        known = answer.digest;
        if (!isNews) await pause(clock, Math.max(0, restMs - (clock.elapsed() - started)), signal);
      } catch (thrown) {
        signal.throwIfAborted();
        // Its component has functions only, or is of an Ambit that knows no others.
        if (thrown instanceof Stalled && (thrown.code === "ListsNoTools" || thrown.code === "NotFound")) return;
        if (!(thrown instanceof AmbitError)) throw thrown;
        // A host that does not answer is no news of its component.
        if (thrown instanceof Invalid) listings.setFault(host.of, host.uid, thrown);
        await pause(clock, Math.min(retryMs.first * 2 ** failures++, retryMs.last), signal);
      }
    }
  } finally {
    listings.setFault(host.of, host.uid, null);
    await asking.close();
  }
};

/** As far as that is known without asking the host. */
const hasFunctionsOnly = async (
  { stores, components }: OperatorContext,
  { of }: HostPod,
  digest: Sha256Digest,
  signal: AbortSignal,
): Promise<boolean> => {
  const workload = stores.workloads.get(keyText({ namespace: of.namespace, name: of.workload }));
  const component = workload && sandboxedComponents(workload.spec).find(({ name }) => name === of.component);
  if (!workload || !component) return false;
  try {
    const stored = await components.fetch(workload, component, signal);
    return stored.digest === digest && untypedExport(stored.interface) === null;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof AmbitError) return false;
    throw thrown;
  }
};
