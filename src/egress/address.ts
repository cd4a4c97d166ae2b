import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { Invalid } from "../api/errors.ts";

/** Which addresses may be dialled besides the public ones, and which never. Ranges are CIDRs: `10.0.0.0/8`, `fd00::/8`. */
export interface AddressPolicy {
  /** Private ranges (RFC 1918, RFC 4193) that may be dialled. It opens nothing else: loopback or link-local stay closed. */
  readonly privateRanges?: readonly string[];
  /** The cluster's pod, service and node ranges, and whatever else must never be reached. Judged first. */
  readonly refusedRanges?: readonly string[];
}

/** Public addresses alone. */
export const publicAddressesOnly: AddressPolicy = {};

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Cloud platforms answer here with credentials although the address looks public (Azure's platform address). */
const platformAddresses: ReadonlySet<string> = new Set(["168.63.129.16"]);

const rangeNames: Readonly<Record<string, string>> = {
  unspecified: "an unspecified address",
  broadcast: "a broadcast address",
  multicast: "a multicast address",
  linkLocal: "a link-local address, where metadata services answer",
  loopback: "a loopback address",
  carrierGradeNat: "a shared address (100.64.0.0/10)",
  benchmarking: "a benchmarking address",
  teredo: "a Teredo address",
  rfc6145: "a translated address",
  rfc6052: "an address of a network's own NAT64",
};

/** What IPv6 hands out to networks of the internet (RFC 4291, 2.4 and the IANA registry); everything else is refused. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");
/** The one NAT64 prefix whose form is fixed (RFC 6052, 2.1); a network's own prefix (RFC 8215) may hide the address anywhere. */
const wellKnownNat64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");
const documentation: readonly string[] = ["2001:db8::/32", "3fff::/20", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"];

/**
 * Why an address must not be dialled, or null where it may. Fails closed: what is not known to be an address of the internet is refused. An IPv4 address
 * inside an IPv6 one (mapped, NAT64, 6to4) is judged as itself.
 */
export const isRefusedAddress = (text: string, policy: AddressPolicy = publicAddressesOnly): string | null => {
  if (isIP(text) === 0 || text.includes("%")) return "not an IP address";
  const outer = ipaddr.parse(text);
  const inner = embeddedIpv4(outer);
  for (const address of inner === null ? [outer] : [outer, inner]) {
    const range = (policy.refusedRanges ?? []).find((cidr) => inRange(address, cidr));
    if (range !== undefined) return `in the refused range ${range}`;
  }
  const reason = closedRange(inner ?? outer, policy);
  return reason === null || inner === null ? reason : `${reason} (${inner.toString()}) written as IPv6`;
};

const closedRange = (address: Address, policy: AddressPolicy): string | null => {
  if (platformAddresses.has(address.toString())) return "a cloud platform's own address";
  if (documentation.some((cidr) => inRange(address, cidr))) return "a documentation address";
  const range = address.range();
  if (range === "private" || range === "uniqueLocal") {
    return (policy.privateRanges ?? []).some((cidr) => inRange(address, cidr))
      ? null
      : "a private address, and no configured private range holds it";
  }
  if (range !== "unicast") return rangeNames[range] ?? `a reserved address (${range})`;
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return "not a global address";
  return null;
};

const embeddedIpv4 = (address: Address): ipaddr.IPv4 | null => {
  if (address instanceof ipaddr.IPv4) return null;
  const bytes = address.toByteArray();
  switch (address.range()) {
    case "ipv4Mapped":
      return new ipaddr.IPv4(bytes.slice(12));
    case "rfc6052":
      return address.match(wellKnownNat64) ? new ipaddr.IPv4(bytes.slice(12)) : null;
    case "6to4":
      return new ipaddr.IPv4(bytes.slice(2, 6));
    default:
      return null;
  }
};

/** Whether an address, as text, lies in the range. Throws `Invalid` with code `AddressRangeInvalid`. */
export const addressWithin = (text: string, cidr: string): boolean => isIP(text) !== 0 && inRange(ipaddr.parse(text), cidr);

const inRange = (address: Address, cidr: string): boolean => {
  const [base, prefix] = parseRange(cidr);
  return base.kind() === address.kind() && address.match(base, prefix);
};

/** Throws `Invalid` with code `AddressRangeInvalid`. */
export const parseRange = (cidr: string): [Address, number] => {
  const [base = ""] = cidr.split("/", 1);
  if (isIP(base) === 0 || !ipaddr.isValidCIDR(cidr)) {
    throw new Invalid("AddressRangeInvalid", `${JSON.stringify(cidr)} is not an address range such as 10.0.0.0/8 or fd00::/8`);
  }
  return ipaddr.parseCIDR(cidr);
};
