import { realpath, stat } from "node:fs/promises";
import { Invalid } from "../api/errors.ts";
import type { HostSecretFolder } from "../api/host.ts";
import { type GivenSource, givenSources, type SandboxedComponent, sandboxedComponents } from "../grants/sandboxed-component.ts";
import { type ComponentFault, type ComponentObservation, seenComponent, type WorkloadObservation } from "./observe.ts";

/** Folders of this machine that stand in for Secrets and ConfigMaps, by their names: one file in each is one key. */
export interface GivenFolders {
  readonly secrets: ReadonlyMap<string, string>;
  readonly configMaps: ReadonlyMap<string, string>;
}

const options = { Secret: "--secret", ConfigMap: "--config-map" } as const;
const faults = { Secret: "SecretMissing", ConfigMap: "ConfigMapMissing" } as const;

const folderOf = ({ secrets, configMaps }: GivenFolders, { kind, name }: Pick<GivenSource, "kind" | "name">): string | undefined =>
  (kind === "Secret" ? secrets : configMaps).get(name);

/** Which components are looked at: `run` are those that run only to tell their tools. */
export type AskedComponents = "all" | "run";

/** A component that is to be given what no folder stands in for has that as its fault, and does not run. */
export const withGivenFaults = (
  workloads: readonly WorkloadObservation[],
  given: GivenFolders,
  asked: AskedComponents,
): Promise<WorkloadObservation[]> =>
  Promise.all(
    workloads.map(async ({ written, components }) => {
      const faulty = await Promise.all(
        sandboxedComponents(written.object.spec).map(async (component): Promise<[string, ComponentObservation][]> => {
          const seen = seenComponent(components.get(component.name));
          if (seen === null || (asked === "run" && seen.listing === "none" && component.serves === undefined)) return [];
          const fault = await faultOf(component, given);
          return fault === null ? [] : [[component.name, { fault }]];
        }),
      );
      return { written, components: new Map([...components, ...faulty.flat()]) };
    }),
  );

const faultOf = async (component: SandboxedComponent, given: GivenFolders): Promise<ComponentFault | null> => {
  for (const source of givenSources(component)) {
    const { kind, name } = source;
    const folder = folderOf(given, source);
    const code = faults[kind];
    if (folder === undefined) {
      const message = `it is given the ${kind} ${name}, for which there is no folder: ${options[kind]} ${name}=FOLDER, with one file for each key`;
      return { code, message, passing: false };
    }
    const isFolder = await stat(folder).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) return { code, message: `the folder ${folder} for the ${kind} ${name} is not there`, passing: true };
  }
  return null;
};

/** What a host is started with. Rejects where a folder that was there is gone. */
export const givenHostFolders = (sources: readonly GivenSource[], given: GivenFolders): Promise<HostSecretFolder[]> =>
  Promise.all(
    sources.map(async ({ kind, name, as }) => {
      const folder = folderOf(given, { kind, name });
      if (folder === undefined) throw new Invalid(faults[kind], `there is no folder for the ${kind} ${name}`);
      return { name: `the ${kind} ${name}`, folder: await realpath(folder), as };
    }),
  );

/** Reads `name=folder` pairs of a command line. Throws `Invalid` `GivenOptionInvalid`. */
export const namedFolders = (
  kind: GivenSource["kind"],
  pairs: readonly string[],
  resolve: (folder: string) => string,
): ReadonlyMap<string, string> =>
  new Map(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1 || at === pair.length - 1)
        throw new Invalid("GivenOptionInvalid", `${options[kind]} takes name=folder, not ${JSON.stringify(pair)}`);
      return [pair.slice(0, at), resolve(pair.slice(at + 1))];
    }),
  );
