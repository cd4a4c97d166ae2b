import type { Sha256Digest } from "../api/digest.ts";
import { type ToolListing, untypedInterface } from "../api/untyped.ts";
import { type ComponentKey, componentKeyText } from "../catalogue/state.ts";
import { withoutExcluded } from "../grants/listing.ts";
import { sandboxedComponents } from "../grants/sandboxed-component.ts";
import type { ComponentSeen, WorkloadObservation } from "./observe.ts";

/** What hosts say that their components list, by component; known of exactly the code that was asked. */
export class Listings {
  readonly #known = new Map<string, { readonly digest: Sha256Digest; readonly listing: ToolListing }>();

  set(key: ComponentKey, digest: Sha256Digest, listing: ToolListing): void {
    this.#known.set(componentKeyText(key), { digest, listing });
  }

  get(key: ComponentKey, digest: Sha256Digest): ToolListing | undefined {
    const known = this.#known.get(componentKeyText(key));
    return known?.digest === digest ? known.listing : undefined;
  }

  /** What was observed, with the tools that components list themselves among those that they offer. */
  addTo(workloads: readonly WorkloadObservation[]): WorkloadObservation[] {
    return workloads.map(({ written, components }) => {
      const { metadata, spec } = written.object;
      const added = new Map(components);
      for (const { name, tools } of sandboxedComponents(spec)) {
        const observation = components.get(name);
        if (!observation || "fault" in observation || observation.seen.listing === "none") continue;
        const { seen } = observation;
        const listing = this.get({ namespace: metadata.namespace ?? "default", workload: metadata.name, component: name }, seen.digest);
        if (listing) added.set(name, { seen: listed(seen, listing, tools?.exclude ?? []) });
      }
      return { written, components: added };
    });
  }
}

const listed = (seen: ComponentSeen, listing: ToolListing, exclude: readonly string[]): ComponentSeen => {
  const { listing: kept, unmatched } = withoutExcluded(listing, exclude);
  return {
    ...seen,
    listing: "known",
    offered: [...seen.offered, ...kept.tools],
    notOffered: [
      ...seen.notOffered,
      ...kept.notOffered.map(({ name, reason }) => ({ interface: untypedInterface, function: name, reason })),
    ],
    unmatchedExclusions: seen.unmatchedExclusions.filter((entry) => unmatched.includes(entry)),
  };
};
