import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { Stalled } from "../api/errors.ts";
import { isRefusedAddress } from "../egress/address.ts";
import type { FetchComponent } from "../local/observe.ts";
import { openContentCache } from "../oci/content-cache.ts";
import { anonymous, parseDockerConfig, type RegistryCredentials } from "../oci/docker-config.ts";
import { fetchComponent, type PullOptions } from "../oci/pull.ts";
import { parseImageReference } from "../oci/reference.ts";
import { createTransport } from "../oci/transport.ts";
import { withProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

/** Where components and what was compiled from them are kept: an option, AMBIT_CACHE, or the user's cache folder (XDG base directories). */
export const cacheFolderOf = (terminal: Terminal, option: string | undefined): string =>
  resolve(terminal.folder, option ?? terminal.env.AMBIT_CACHE ?? join(terminal.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "ambit"));

const loopbackRegistry = /^(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?$/;

/**
 * Components from files and registries, for commands that a person runs: credentials from the Docker configuration, private registries reached by their
 * names, a registry on this machine over plain HTTP because its name says that it is one.
 */
export const componentSource = (terminal: Terminal, cacheFolder: string): FetchComponent => {
  const cache = openContentCache(cacheFolder);
  const credentials = dockerCredentials(terminal);
  const remote = createTransport({ refusedAddress: (address) => isRefusedAddress(address, { privateRanges: privateNetworks }) });
  const onThisMachine = createTransport({ refusedAddress: (address) => (isLoopback(address) ? null : "not on this machine") });
  return async (image, folder, allowTags) => {
    const reference = parseImageReference(image);
    const isLocal = reference.kind === "registry" && loopbackRegistry.test(reference.registry);
    const fetch = () =>
      withProgress(terminal, `Fetching ${image}`, async (report) => {
        const options: PullOptions = {
          transport: isLocal ? onThisMachine : remote,
          credentials: await credentials(),
          cache,
          allowTags,
          isPlainHttp: (registry) => loopbackRegistry.test(registry),
          onProgress: ({ received, total }) => report(`${megabytes(received)} of ${megabytes(total)} MB`),
        };
        return fetchComponent(image, folder, options);
      });
    const { bytes, digest } = await fetch();
    let first: Uint8Array | null = bytes;
    return {
      digest,
      file: reference.kind === "file" ? (isAbsolute(reference.path) ? reference.path : resolve(folder, reference.path)) : null,
      read: async () => {
        if (first) {
          const held = first;
          first = null;
          return held;
        }
        const again = await fetch();
        if (again.digest === digest) return again.bytes;
        throw new Stalled("DigestMismatch", `${image} changed while it was being read: it was ${digest} and is ${again.digest}`);
      },
    };
  };
};

/** Where companies keep registries (RFC 1918, RFC 4193): whoever types a registry's name may mean one of these. */
const privateNetworks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

const isLoopback = (address: string): boolean => address === "::1" || address.startsWith("127.");

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);

/** Read once, when the first image from a registry needs it. A file that is not there means no credentials. */
const dockerCredentials = (terminal: Terminal): (() => Promise<RegistryCredentials>) => {
  let read: Promise<RegistryCredentials> | undefined;
  const folder = terminal.env.DOCKER_CONFIG ?? join(homedir(), ".docker");
  return () => {
    read ??= readFile(join(folder, "config.json"), "utf8").then(parseDockerConfig, (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return anonymous;
      throw new Stalled("DockerConfigUnreadable", `${join(folder, "config.json")} cannot be read: ${error.message}`, { cause: error });
    });
    return read;
  };
};
