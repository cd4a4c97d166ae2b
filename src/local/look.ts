import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import { loadManifests } from "../manifests/load.ts";
import type { Problem } from "../manifests/problem.ts";
import type { Manifest, Written } from "../manifests/read.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { decide, type Plan } from "./desired.ts";
import { type GivenFolders, withGivenFaults } from "./given-folders.ts";
import type { ListTools } from "./list-tools.ts";
import { ComponentObserver, type FetchComponent, type WorkloadObservation } from "./observe.ts";

/** A folder of manifests as it is now, judged. */
export interface Look {
  readonly objects: readonly Manifest[];
  readonly problems: readonly Problem[];
  readonly workloads: readonly WorkloadObservation[];
  readonly plan: Plan;
}

/** Reads a folder and its components and judges its grants: what `ambit up` would serve. Throws what `loadManifests` throws. */
export const lookAt = async (folder: string, fetchComponent: FetchComponent, listTools: ListTools, given: GivenFolders): Promise<Look> => {
  const { objects, problems } = await loadManifests(folder, { assertUsableSchema });
  const written = objects.filter((object) => object.kind === "Workload");
  const observed = await withGivenFaults(await new ComponentObserver(fetchComponent).observe(written), given, "run");
  const hosts = decide({ workloads: observed, grants: [] }).hosts.filter((host) => host.listsTools || host.serves);
  const workloads = hosts.length > 0 ? (await listTools(hosts)).addTo(observed) : observed;
  const grants = objects.filter((object) => object.kind === "ToolGrant");
  return { objects, problems, workloads, plan: decide({ workloads, grants, assertUsableSchema }) };
};

/** How many folders above a grant's own its Workload is looked for. */
const foldersAbove = 3;

/**
 * The folder that a file's grants are to be judged in: its own, or the nearest above that holds every Workload they name. Its own, where none does: the
 * judgement then says what is missing.
 */
export const folderOfWorkloads = async (file: string, grants: readonly Written<"ToolGrant", ToolGrant>[]): Promise<string> => {
  const wanted = new Set(grants.map(({ object }) => `${object.metadata.namespace ?? "default"}/${object.spec.tool.workload}`));
  const own = dirname(file);
  let folder = own;
  for (let above = 0; above <= foldersAbove && folder !== dirname(folder); above++) {
    if ((await lstat(folder)).isDirectory()) {
      const { objects } = await loadManifests(folder);
      const there = new Set(
        objects
          .filter(({ kind }) => kind === "Workload")
          .map(({ object }) => `${object.metadata.namespace ?? "default"}/${object.metadata.name}`),
      );
      if ([...wanted].every((name) => there.has(name))) return folder;
    }
    folder = dirname(folder);
  }
  return own;
};
