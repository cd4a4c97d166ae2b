import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { HostConfig } from "../api/host.ts";
import type { ComponentKey } from "../catalogue/state.ts";
import type { DesiredHost } from "./desired.ts";
import type { LocalVolumes } from "./volumes.ts";

/** Makes a host's folders on this machine: its own cache, as each pod has one, since a host may write there and must not write what another reads, and its mounts. */
export const hostPlaces =
  (volumes: LocalVolumes, cacheFolder: string, claimMade: (claim: string, folder: string) => void) =>
  async ({ key, mounts }: DesiredHost): Promise<Pick<HostConfig, "mounts" | "cacheFolder">> => {
    const own = join(cacheFolder, "hosts", folderName(key));
    await mkdir(own, { recursive: true });
    return { mounts: await volumes.mount(key.namespace, mounts, claimMade), cacheFolder: own };
  };

const folderName = ({ namespace, workload, component }: ComponentKey): string => `${namespace}.${workload}.${component}`;
