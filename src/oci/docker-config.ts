import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { RegistryReference } from "./reference.ts";

/** What a registry wants to know of its caller. Never logged and never part of a message. */
export type Credentials =
  | { readonly kind: "password"; readonly username: string; readonly password: string }
  /** An OAuth 2 refresh token, exchanged at the token server that the registry names. */
  | { readonly kind: "refresh-token"; readonly token: string }
  /** A bearer token for the registry itself. */
  | { readonly kind: "bearer"; readonly token: string };

/**
 * Credentials by registry, from a Docker `config.json` or from the `.dockerconfigjson` of a pull secret: only what stands in `auths`. A credential helper is a
 * program, and pulling a tool is no reason to run one.
 */
export interface RegistryCredentials {
  credentialsFor(reference: RegistryReference): Credentials | null;
  /** The credential helper that the file names for this registry, for a message that tells why there are no credentials. */
  helperFor(reference: RegistryReference): string | null;
}

export const anonymous: RegistryCredentials = { credentialsFor: () => null, helperFor: () => null };

const limits = { maxLength: 1024 * 1024, maxDepth: 16 };

/**
 * Reads a Docker client configuration. Keys of `auths` are hosts, URLs, or a host with the start of a repository's path; the longest that matches decides, as
 * in Kubernetes and Podman. Throws `Invalid` with code `DockerConfigInvalid`, whose message quotes nothing of the file.
 */
export const parseDockerConfig = (text: string): RegistryCredentials => {
  const config = configObject(text);
  const auths = new Map(Object.entries(objectAt(config, "auths")).map(([key, entry]) => [normalKey(key), credentialsOf(key, entry)]));
  const helpers = new Map(Object.entries(objectAt(config, "credHelpers")).map(([key, helper]) => [normalKey(key), String(helper)]));
  const store = typeof config.credsStore === "string" && config.credsStore !== "" ? config.credsStore : null;
  return {
    credentialsFor: (reference) => longestMatch(auths, reference) ?? null,
    helperFor: (reference) => longestMatch(helpers, reference) ?? store,
  };
};

const configObject = (text: string): JsonObject => {
  let value: JsonValue;
  try {
    value = parseJson(text, limits);
  } catch (thrown) {
    throw invalid("it is not JSON", { cause: thrown });
  }
  if (!isJsonObject(value)) throw invalid("it is not an object");
  return value;
};

const objectAt = (config: JsonObject, key: string): JsonObject => {
  const value = config[key] ?? {};
  if (!isJsonObject(value)) throw invalid(`${key} is not an object`);
  return value;
};

const credentialsOf = (key: string, entry: JsonValue): Credentials | null => {
  if (!isJsonObject(entry)) throw invalid(`auths[${JSON.stringify(key)}] is not an object`);
  const text = (name: string): string => (typeof entry[name] === "string" ? entry[name] : "");
  if (text("identitytoken") !== "") return { kind: "refresh-token", token: text("identitytoken") };
  if (text("registrytoken") !== "") return { kind: "bearer", token: text("registrytoken") };
  if (text("username") !== "") return { kind: "password", username: text("username"), password: text("password") };
  if (text("auth") === "") return null;
  const decoded = Buffer.from(text("auth"), "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon < 1) throw invalid(`auths[${JSON.stringify(key)}].auth is not the base64 of user:password`);
  // Docker pads with NUL characters at the end.
  return { kind: "password", username: decoded.slice(0, colon), password: decoded.slice(colon + 1).replace(/\0+$/, "") };
};

/** `https://index.docker.io/v1/`, `docker.io` and `registry-1.docker.io` are one registry. */
const normalKey = (key: string): string => {
  const bare = key
    .replace(/^https?:\/\//, "")
    .replace(/\/+$/, "")
    .replace(/\/v[12]$/, "")
    .toLowerCase();
  return bare === "index.docker.io" || bare === "registry-1.docker.io" ? "docker.io" : bare;
};

const longestMatch = <T>(entries: ReadonlyMap<string, T>, { registry, repository }: RegistryReference): T | undefined => {
  const parts = `${registry}/${repository}`.split("/");
  for (let length = parts.length; length > 0; length--) {
    const found = entries.get(parts.slice(0, length).join("/"));
    if (found !== undefined) return found;
  }
  return undefined;
};

const invalid = (why: string, options?: ErrorOptions): Invalid =>
  new Invalid("DockerConfigInvalid", `the registry credentials cannot be read: ${why}`, undefined, options);
