import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { Invalid } from "../api/errors.ts";
import { canonicalHost, defaultPort, portFault, quoted, type Scheme, splitPort, type Target } from "./target.ts";

/**
 * One entry of `allowedHosts`, read. A null scheme stands for both; a null port for the scheme's default port alone.
 *
 *   "https://*.example.com:8443"  →  { scheme: "https", port: 8443, hosts: { kind: "below", suffix: "example.com" } }
 *
 * The grammar and its reasons are in docs/egress.md.
 */
export interface AllowedHost {
  readonly entry: string;
  readonly scheme: Scheme | null;
  readonly port: number | null;
  readonly hosts: HostSet;
}

export type HostSet =
  | { readonly kind: "name"; readonly name: string }
  /** Any depth below the suffix, never the suffix itself. */
  | { readonly kind: "below"; readonly suffix: string }
  | { readonly kind: "addresses"; readonly base: string; readonly prefix: number }
  | { readonly kind: "any" };

export interface AllowedHostRules {
  /** Whether the entry `*`, which names every host, may be used at all. */
  readonly allowAny?: boolean;
}

/** Throws `Invalid` with code `AllowedHostInvalid`; the message quotes the entry and says why. `allowedHostText` gives the canonical spelling back. */
export const parseAllowedHost = (entry: string, rules: AllowedHostRules = {}): AllowedHost => {
  const fail = (reason: string): Invalid =>
    new Invalid(
      "AllowedHostInvalid",
      `the allowed host ${quoted(entry)} cannot be used: ${reason}; see docs/egress.md for what an entry may be`,
    );
  if (entry.length > 300) throw fail("it is longer than 300 characters");
  const { scheme, rest } = splitScheme(entry);
  if (scheme === undefined) throw fail("the scheme must be http or https");
  if (rest.includes("@")) throw fail("user info is not allowed");
  const { host, port } = splitPort(rest);
  const badPort = port === null ? portFault(rest) : null;
  const hosts = readHosts(badPort === null ? host : hostBeforePort(rest), rules);
  if (typeof hosts === "string") throw fail(hosts);
  if (badPort !== null) throw fail(badPort);
  if (hosts.kind === "addresses" && hosts.prefix < addressBits(hosts.base) && port === null) throw fail("an address range needs a port");
  return { entry, scheme, port, hosts };
};

/** Whether any entry admits the target. No entries admit nothing. */
export const allows = (allowed: readonly AllowedHost[], target: Target): boolean => allowing(allowed, target) !== undefined;

/** The first entry that admits a target. */
export const allowing = (allowed: readonly AllowedHost[], target: Target): AllowedHost | undefined =>
  allowed.find(
    (one) =>
      (one.scheme === null || one.scheme === target.scheme) &&
      (one.port ?? defaultPort(target.scheme)) === target.port &&
      holdsHost(one.hosts, target.host),
  );

/** The entry in canonical spelling: lower-case ASCII, IPv6 in brackets. */
export const allowedHostText = (allowed: AllowedHost): string => {
  const scheme = allowed.scheme === null ? "" : `${allowed.scheme}://`;
  return `${scheme}${hostsText(allowed.hosts)}${allowed.port === null ? "" : `:${allowed.port}`}`;
};

const hostsText = (hosts: HostSet): string => {
  switch (hosts.kind) {
    case "any":
      return "*";
    case "name":
      return hosts.name;
    case "below":
      return `*.${hosts.suffix}`;
    case "addresses": {
      const base = isIP(hosts.base) === 6 ? `[${hosts.base}]` : hosts.base;
      return hosts.prefix === addressBits(hosts.base) ? base : `${base}/${hosts.prefix}`;
    }
  }
};

const splitScheme = (entry: string): { readonly scheme: Scheme | null | undefined; readonly rest: string } => {
  const separator = entry.indexOf("://");
  if (separator === -1) return { scheme: null, rest: entry };
  const scheme = entry.slice(0, separator).toLowerCase();
  return { scheme: scheme === "http" || scheme === "https" ? scheme : undefined, rest: entry.slice(separator + 3) };
};

const hostBeforePort = (text: string): string =>
  text.startsWith("[") ? text.slice(0, text.indexOf("]") + 1) : text.slice(0, text.indexOf(":"));

const readHosts = (text: string, rules: AllowedHostRules): HostSet | string => {
  if (text === "*") return rules.allowAny ? { kind: "any" } : "`*` would allow every host, which this installation does not permit";
  if (text.startsWith("*.")) {
    const suffix = canonicalHost(text.slice(2));
    if (suffix.fault !== undefined) return suffix.fault;
    return isIP(suffix.host) === 0 ? { kind: "below", suffix: suffix.host } : "a wildcard stands before a name, not before an address";
  }
  if (text.includes("*")) return "a wildcard is the whole first label: `*.example.com`";
  const range = /^(\[[^\]]*\]|[0-9.]+)\/([0-9]{1,3})$/.exec(text);
  if (range) return readRange(range[1] ?? "", Number(range[2]));
  const host = canonicalHost(text);
  if (host.fault !== undefined) return host.fault;
  return isIP(host.host) === 0 ? { kind: "name", name: host.host } : { kind: "addresses", base: host.host, prefix: addressBits(host.host) };
};

const readRange = (base: string, prefix: number): HostSet | string => {
  const host = canonicalHost(base);
  if (host.fault !== undefined) return host.fault;
  if (isIP(host.host) === 0) return `${quoted(base)} is not an address`;
  if (prefix > addressBits(host.host)) return `/${prefix} is more bits than the address has`;
  return { kind: "addresses", base: host.host, prefix };
};

export const addressBits = (address: string): number => (isIP(address) === 6 ? 128 : 32);

const holdsHost = (hosts: HostSet, host: string): boolean => {
  switch (hosts.kind) {
    case "any":
      return true;
    case "name":
      return hosts.name === host;
    case "below":
      return isIP(host) === 0 && host.length > hosts.suffix.length + 1 && host.endsWith(`.${hosts.suffix}`);
    case "addresses":
      return rangeHolds(hosts.base, hosts.prefix, host, addressBits(host));
  }
};

/** Whether the range `inner/innerPrefix` lies in `base/prefix`; false for names and for addresses of another family. */
const rangeHolds = (base: string, prefix: number, inner: string, innerPrefix: number): boolean =>
  isIP(inner) !== 0 && isIP(inner) === isIP(base) && innerPrefix >= prefix && ipaddr.parse(inner).match(ipaddr.parse(base), prefix);

const hostsWithin = (inner: HostSet, outer: HostSet): boolean => {
  if (outer.kind === "any") return true;
  switch (inner.kind) {
    case "any":
      return false;
    case "name":
      return holdsHost(outer, inner.name);
    case "below":
      return outer.kind === "below" && (inner.suffix === outer.suffix || inner.suffix.endsWith(`.${outer.suffix}`));
    case "addresses":
      return outer.kind === "addresses" && rangeHolds(outer.base, outer.prefix, inner.base, inner.prefix);
  }
};

/**
 * Whether everything that `entry` reaches is reached by `within`, an entry or several together. An entry that cannot be read is within nothing and
 * nothing is within it.
 */
export const hostWithin = (entry: AllowedHost | string, within: AllowedHost | string | readonly (AllowedHost | string)[]): boolean => {
  const inner = readOrNull(entry);
  if (inner === null) return false;
  const outers = (Array.isArray(within) ? within : [within]).map(readOrNull).filter((one) => one !== null);
  return doors(inner).every((door) => outers.some((outer) => doors(outer).includes(door) && hostsWithin(inner.hosts, outer.hosts)));
};

/** The pairs of scheme and effective port that an entry opens. */
const doors = (allowed: AllowedHost): string[] => {
  const schemes: readonly Scheme[] = allowed.scheme === null ? ["http", "https"] : [allowed.scheme];
  return schemes.map((scheme) => `${scheme}:${allowed.port ?? defaultPort(scheme)}`);
};

const readOrNull = (entry: AllowedHost | string): AllowedHost | null => {
  if (typeof entry !== "string") return entry;
  try {
    return parseAllowedHost(entry, { allowAny: true });
  } catch (error) {
    if (error instanceof Invalid) return null;
    throw error;
  }
};
