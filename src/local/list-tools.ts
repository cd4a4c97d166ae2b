import type { DesiredHost } from "./desired.ts";
import { type FleetEvent, HostFleet } from "./host-fleet.ts";
import { hostPlaces } from "./host-places.ts";
import { Listings } from "./listings.ts";
import { OperatorKeys } from "./operator-keys.ts";
import type { LocalSettings } from "./runtime.ts";
import { LocalVolumes } from "./volumes.ts";

export type HostSettings = Pick<LocalSettings, "claims" | "given" | "hostOverrides" | "privateRanges" | "cacheFolder">;

/** Asks these hosts for the tools that their components list themselves. */
export type ListTools = (hosts: readonly DesiredHost[]) => Promise<Listings>;

/**
 * Runs components, each in its sandbox as `ambit up` would, only to hear which tools they list. Nothing is called. What a component could not tell is told as the
 * fleet's events, and missing in the result.
 */
export const toolLister =
  (settings: HostSettings, tell: (event: FleetEvent) => void): ListTools =>
  async (hosts) => {
    const listings = new Listings();
    const volumes = new LocalVolumes(settings.claims, settings.cacheFolder);
    const fleet = new HostFleet({
      keys: new OperatorKeys(() => Date.now()),
      place: hostPlaces(volumes, settings.given, settings.cacheFolder, () => undefined),
      hostOverrides: settings.hostOverrides,
      privateRanges: settings.privateRanges,
      publish: () => undefined,
      listed: (key, digest, listing) => listings.set(key, digest, listing),
      tell,
      monotonic: () => performance.now(),
    });
    try {
      await fleet.apply(hosts);
      return listings;
    } finally {
      await fleet.close();
      await volumes.close();
    }
  };
