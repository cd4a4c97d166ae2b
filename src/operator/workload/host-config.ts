import { createHash } from "node:crypto";
import type { Sha256Digest } from "../../api/digest.ts";
import type { HostConfig, HostMount } from "../../api/host.ts";
import { canonicalJson, type JsonValue } from "../../api/json.ts";
import { type GivenSource, givenSources, type SandboxedComponent } from "../../grants/sandboxed-component.ts";
import { hostLimits } from "../../manifests/quantities.ts";
import { hopPort, hostPort } from "../names.ts";

/** Places in a host's container. */
export const hostPlaces = {
  /** Folder of the ConfigMap with the configuration. */
  config: "/etc/ambit/host",
  /** Name of the file in it. */
  configFile: "config.json",
  /** The component and what was compiled from it; lasts as long as the pod. */
  cache: "/var/lib/ambit/cache",
  /** Folder of the volumes, each in a folder of its name. */
  volumes: "/var/lib/ambit/volumes",
  /** Folder of what is given as variables and headers: ConfigMaps and Secrets, each in a folder of its name below that of its kind. */
  given: "/var/lib/ambit/given",
} as const;

/** What a host of this component is started with, as JSON text that is the same for the same host. */
export const hostConfigText = (component: SandboxedComponent, digest: Sha256Digest, rootKey: string): string => {
  const { allowedHosts = [], environment } = component.localResources ?? {};
  const config: HostConfig = {
    component: digest,
    rootKey,
    // Only the pod knows it, and fills it in from its environment.
    podUid: "",
    // All addresses, of either family.
    listen: { address: "", port: hostPort },
    transport: "tls",
    allowedHosts,
    resolver: "table",
    hostOverrides: {},
    environment: environment?.config ?? {},
    ...secretFoldersOf(component),
    mounts: mountsOf(component),
    limits: hostLimits(component.limits),
    ...(component.serves === undefined ? {} : { serve: { address: "", port: hopPort } }),
    ...(component.bridge?.kind === "component" ? { hop: { authority: component.bridge.component } } : {}),
    callsPerInstance: component.reuse.calls,
    cacheFolder: hostPlaces.cache,
  };
  return canonicalJson(config as unknown as JsonValue);
};

/** Ends the name of the ConfigMap, so that pods of two configurations never read each other's. */
export const configHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 10);

/** Where a ConfigMap or a Secret is mounted. */
export const givenPlace = ({ kind, name }: Pick<GivenSource, "kind" | "name">): string =>
  `${hostPlaces.given}/${kind.toLowerCase()}s/${name}`;

const secretFoldersOf = (component: SandboxedComponent): Pick<HostConfig, "secretFolders"> => {
  const sources = givenSources(component);
  if (sources.length === 0) return {};
  return { secretFolders: sources.map(({ kind, name, as }) => ({ name: `the ${kind} ${name}`, folder: givenPlace({ kind, name }), as })) };
};

const mountsOf = (component: SandboxedComponent): HostMount[] =>
  (component.localResources?.volumeMounts ?? []).map(({ name, mountPath, readOnly }) => ({
    name,
    folder: `${hostPlaces.volumes}/${name}`,
    mountPath,
    readOnly,
  }));
