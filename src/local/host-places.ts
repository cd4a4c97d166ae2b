import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { HostConfig } from "../api/host.ts";
import type { ComponentKey } from "../catalogue/state.ts";
import type { DesiredHost } from "./desired.ts";
import { type GivenFolders, givenHostFolders } from "./given-folders.ts";
import type { LocalVolumes } from "./volumes.ts";

/** Makes a host's folders on this machine: its own cache, as each pod has one, since a host may write there and must not write what another reads, its mounts, and what stands in for Secrets. */
export const hostPlaces =
  (volumes: LocalVolumes, given: GivenFolders, cacheFolder: string, claimMade: (claim: string, folder: string) => void) =>
  async ({ key, mounts, sources }: DesiredHost): Promise<Pick<HostConfig, "mounts" | "secretFolders" | "cacheFolder">> => {
    const own = join(cacheFolder, "hosts", folderName(key));
    await mkdir(own, { recursive: true });
    const secretFolders = await givenHostFolders(sources, given);
    return { mounts: await volumes.mount(key.namespace, mounts, claimMade), secretFolders, cacheFolder: own };
  };

const folderName = ({ namespace, workload, component }: ComponentKey): string => `${namespace}.${workload}.${component}`;
