import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { Invalid } from "../api/errors.ts";

export type Scheme = "http" | "https";

/**
 * What a request would connect to, in the one spelling that every rule compares.
 *
 *   { scheme: "https", host: "api.example.com", port: 443 }
 *
 * `host` is a lower-case ASCII name without a trailing dot, or an IP literal without brackets (IPv6 as RFC 5952 writes it). `port` is the effective one.
 */
export interface Target {
  readonly scheme: Scheme;
  readonly host: string;
  readonly port: number;
}

export const defaultPort = (scheme: Scheme): number => (scheme === "https" ? 443 : 80);

/** `host:port`, IPv6 in brackets: the key of address tables and overrides. */
export const hostPort = (host: string, port: number): string => (isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`);

/**
 * Reads the authority of a request. Throws `Invalid` with code `AuthorityInvalid`: user info, a trailing dot, an empty or over-long label, a number that is
 * no dotted IPv4 address, a port outside 1 to 65535.
 */
export const targetOf = (scheme: Scheme, authority: string): Target => {
  const { host, port } = splitPort(authority);
  const fault = port === null ? portFault(authority) : null;
  const name = canonicalHost(host);
  if (fault !== null || name.fault !== undefined) {
    throw new Invalid("AuthorityInvalid", `the authority ${quoted(authority)} cannot be used: ${name.fault ?? fault}`);
  }
  return { scheme, host: name.host, port: port ?? defaultPort(scheme) };
};

/** Splits `host`, `host:port`, `[v6]` and `[v6]:port`. The port is null when there is none, or none that holds: `portFault` tells. */
export const splitPort = (text: string): { readonly host: string; readonly port: number | null } => {
  const match = /^(.*?)(?::([0-9]{1,5}))?$/s.exec(isIP(text) === 6 ? `[${text}]` : text);
  const digits = match?.[2];
  const port = digits === undefined ? null : Number(digits);
  const holds = port !== null && port >= 1 && port <= 65535 && !digits?.startsWith("0");
  return { host: match?.[1] ?? text, port: holds ? port : null };
};

/** Why the part after the last colon is no port, or null where there is no such part. */
export const portFault = (text: string): string | null => {
  if (isIP(text) === 6) return null;
  const afterHost = text.startsWith("[") ? text.slice(text.indexOf("]") + 1) : text;
  const colon = afterHost.indexOf(":");
  if (colon === -1 || splitPort(text).port !== null) return null;
  return `${quoted(afterHost.slice(colon + 1))} is not a port from 1 to 65535`;
};

/** A host in canonical spelling, or why it is none. */
export const canonicalHost = (text: string): { readonly host: string; readonly fault?: undefined } | { readonly fault: string } => {
  if (text === "") return { fault: "there is no host" };
  if (text.startsWith("[") && text.endsWith("]")) {
    const inner = text.slice(1, -1);
    return isIP(inner) === 6 && !inner.includes("%") ? { host: canonicalIpv6(inner) } : { fault: `${quoted(text)} is not an IPv6 address` };
  }
  if (isIP(text) === 4) return { host: text };
  if (text.includes("@")) return { fault: "user info is not allowed" };
  if (/[/?#\\]/.test(text)) return { fault: "a path or query is not allowed" };
  if (/[\s%:[\]<>^|]/.test(text)) return { fault: `${quoted(text)} has a character that no host name has` };
  if (text.endsWith(".")) return { fault: "a trailing dot is not allowed" };
  if (text.split(".").includes("")) return { fault: "a label is empty" };
  const ascii = domainToASCII(text);
  if (ascii === "") return { fault: `${quoted(text)} is not a host name` };
  if (isIP(ascii) !== 0) return { fault: `${quoted(text)} is another spelling of the address ${ascii}` };
  return labelFault(ascii) ?? { host: ascii };
};

const labelFault = (name: string): { readonly fault: string } | null => {
  if (name.length > 253) return { fault: "the name is longer than 253 characters" };
  for (const label of name.split(".")) {
    if (label.length > 63) return { fault: `the label ${quoted(label)} is longer than 63 characters` };
    if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label))
      return { fault: `${quoted(label)} is not a label of letters, digits and inner hyphens` };
  }
  const last = name.slice(name.lastIndexOf(".") + 1);
  return /^[0-9]+$/.test(last) ? { fault: `${quoted(name)} ends in a number but is not an IPv4 address` } : null;
};

/** The spelling that `URL` gives, which is RFC 5952's. */
const canonicalIpv6 = (address: string): string => new URL(`http://[${address}]/`).hostname.slice(1, -1);

export const quoted = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 117)}…` : text);
