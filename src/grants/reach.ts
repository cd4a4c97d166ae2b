import type { Reach } from "../api/definition.ts";
import { Invalid } from "../api/errors.ts";
import type { Volume, VolumeMount, WorkloadSpec } from "../api/generated/workload.ts";
import { canonicalJson, isJsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { WitImport } from "../api/wit.ts";
import { allowedHostText, hostWithin, parseAllowedHost } from "../egress/allowed-host.ts";
import { givenSources, sandboxedComponents, serverOf } from "./sandboxed-component.ts";

/**
 * What a component may touch by its Workload and what it imports. A volume that comes from a claim says which: `docs=docs-claim:/docs:ro`, so that another
 * claim behind the same name is another reach. Secrets are there by their names; what ConfigMaps say is no reach. Imports of types alone reach nothing and are left out.
 *
 * An MCP server's tools reach what the server does: of a bridge to a component it is what that component may touch, and `imports` are that component's; of a bridge to a remote
 * server it is the server. What the bridge itself imports comes with Ambit and is no reviewer's concern.
 *
 * Throws `Invalid` (`ComponentMissing`) where the Workload has no such component.
 */
export const reachOf = (workload: WorkloadSpec, componentName: string, imports: readonly WitImport[]): Reach => {
  const component = sandboxedComponents(workload).find(({ name }) => name === componentName);
  if (!component)
    throw new Invalid("ComponentMissing", `the workload has no component ${JSON.stringify(componentName)}`, "/spec/components");
  const reaching = serverOf(workload, component) ?? component;
  const resources = reaching.localResources;
  return {
    hosts: sortedSet((resources?.allowedHosts ?? []).map(canonicalHost)),
    volumes: sortedSet((resources?.volumeMounts ?? []).map((mount) => volumeText(mount, workload.volumes ?? []))),
    secrets: sortedSet(givenSources(reaching).flatMap(({ kind, name }) => (kind === "Secret" ? [name] : []))),
    imports: component.bridge?.kind === "remote" ? [] : sortedSet(imports.filter(needsProvider).map(({ id }) => id)),
  };
};

/** What a pod is made to touch, as text that it carries. Without what its code imports: that goes with the code's digest. */
export const podReachText = (workload: WorkloadSpec, componentName: string): string => {
  const { hosts, volumes, secrets } = reachOf(workload, componentName, []);
  return canonicalJson({ hosts, volumes, secrets });
};

/** Null for what `podReachText` did not write. */
export const readPodReach = (text: string): Reach | null => {
  try {
    const written = parseJson(text, { maxLength: longestReach, maxDepth: 2 });
    if (!isJsonObject(written)) return null;
    const { hosts, volumes, secrets } = written;
    return isTexts(hosts) && isTexts(volumes) && isTexts(secrets) ? { hosts, volumes, secrets, imports: [] } : null;
  } catch (error) {
    if (error instanceof Invalid) return null;
    throw error;
  }
};

/** As much as all annotations of an object may have. */
const longestReach = 262_144;

const isTexts = (value: JsonValue | undefined): value is string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === "string");

/** One thing that can be touched now and could not when it was reviewed. */
export interface Widening {
  readonly kind: "host" | "volume" | "secret" | "import";
  readonly entry: string;
}

/** What `now` reaches beyond `reviewed`; empty where it reaches the same or less. */
export const reachWithin = (now: Reach, reviewed: Reach): Widening[] => [
  ...beyond("host", now.hosts, (host) => hostWithin(host, reviewed.hosts)),
  ...beyond("volume", now.volumes, (volume) => reviewed.volumes.includes(volume) || reviewed.volumes.includes(writable(volume))),
  ...beyond("secret", now.secrets, (secret) => reviewed.secrets.includes(secret)),
  ...beyond("import", now.imports, (id) => {
    const wanted = compatibleId(id);
    return reviewed.imports.some((known) => compatibleId(known) === wanted);
  }),
];

const beyond = (kind: Widening["kind"], entries: readonly string[], isWithin: (entry: string) => boolean): Widening[] =>
  entries.flatMap((entry) => (isWithin(entry) ? [] : [{ kind, entry }]));

/** An entry that cannot be read reaches nothing; it is shown as it was written. */
const canonicalHost = (entry: string): string => {
  try {
    return allowedHostText(parseAllowedHost(entry, { allowAny: true }));
  } catch (error) {
    if (error instanceof Invalid) return entry;
    throw error;
  }
};

const volumeText = (mount: VolumeMount, volumes: readonly Volume[]): string => {
  const claim = volumes.find(({ name }) => name === mount.name)?.persistentVolumeClaim;
  const source = claim ? `${mount.name}=${claim.claimName}` : mount.name;
  return `${source}:${mount.mountPath}:${mount.readOnly ? "ro" : "rw"}`;
};

/** Who may write may also read, so a read-only mount is within a writable one of the same volume at the same path. */
const writable = (volume: string): string => volume.replace(/:ro$/, ":rw");

const needsProvider = (imported: WitImport): boolean =>
  imported.kind === "function" || imported.functions.length > 0 || imported.resources.length > 0;

/**
 * The interface with the version that semantic versioning lets it be replaced by: a patch release of an interface is the same interface.
 * `wasi:http/types@0.2.6` → `wasi:http/types@0.2`, `a:b/c@1.4.0` → `a:b/c@1`.
 */
const compatibleId = (id: string): string =>
  id.replace(/@(\d+)\.(\d+)\.\d+$/, (_, major: string, minor: string) => (major === "0" ? `@0.${minor}` : `@${major}`));

const sortedSet = (entries: readonly string[]): string[] => [...new Set(entries)].sort();
