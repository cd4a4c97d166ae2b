import { isIP } from "node:net";
import { Invalid, Refused, Transient } from "../api/errors.ts";
import { type AddressPolicy, addressWithin, isRefusedAddress } from "./address.ts";
import { hostPort, splitPort, type Target } from "./target.ts";

/**
 * Where each allowed host may be dialled, as it was resolved and screened by whoever made the table.
 *
 *   { "api.example.com:443": ["192.0.2.7", "2001:db8::7"], "10.1.0.0/16:5432": ["10.1.0.0/16"] }
 *
 * Keys are host and effective port, or a range of addresses and a port, in which an address may be dialled that is written as the host. A host that is no key may not be dialled.
 */
export type AddressTable = ReadonlyMap<string, readonly string[]>;

/** One place to connect to: an IP address and a port. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/**
 * Gives the endpoints of a target that the grants already admit, in the order to try them; never an empty list. Throws `Refused` (`HostNotInTable`,
 * `AddressRefused`) or `Transient` (`HostNotResolved`).
 */
export type Resolver = (target: Target) => Promise<readonly Endpoint[]>;

/** A name service: every address of a name. Rejects when there is none. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** Dials what the table says and nothing else; `table` is asked each time, so that a newer one counts at once. */
export const tableResolver =
  (table: () => AddressTable): Resolver =>
  async (target) => {
    const addresses = tableAddresses(table(), target);
    if (addresses.length === 0) {
      throw new Refused("HostNotInTable", `no address is known for ${hostPort(target.host, target.port)}, so it cannot be dialled`);
    }
    return addresses.map((address) => ({ address, port: target.port }));
  };

/** The addresses that the table has for a target; none where it may not be dialled. */
export const tableAddresses = (table: AddressTable, { host, port }: Target): readonly string[] => {
  const listed = table.get(hostPort(host, port));
  if (listed !== undefined || isIP(host) === 0) return listed ?? [];
  const isWithin = (key: string): boolean =>
    key.includes("/") && key.endsWith(`:${port}`) && addressWithin(host, key.slice(0, key.lastIndexOf(":")));
  return [...table.keys()].some(isWithin) ? [host] : [];
};

/**
 * Looks names up and screens every address. `overrides` maps `host:port` to `address:port`: dialled as it is, whatever address it is, because who runs
 * the process said so.
 *
 * Throws `Invalid` with code `HostOverrideInvalid` for an override that cannot be read.
 */
export const systemResolver = (lookup: Lookup, policy: AddressPolicy, overrides: Readonly<Record<string, string>> = {}): Resolver => {
  const replaced = new Map(Object.entries(overrides).map(([from, to]) => [from.toLowerCase(), overrideEndpoint(from, to)]));
  return async (target) => {
    const override = replaced.get(hostPort(target.host, target.port));
    if (override !== undefined) return [override];
    const found = isIP(target.host) === 0 ? await lookedUp(lookup, target.host) : [target.host];
    const verdicts = found.map((address) => ({ address, reason: isRefusedAddress(address, policy) }));
    const usable = verdicts.filter(({ reason }) => reason === null);
    if (usable.length > 0) return usable.map(({ address }) => ({ address, port: target.port }));
    const refused = verdicts.map(({ address, reason }) => `${address} is ${reason}`).join("; ");
    throw new Refused("AddressRefused", `${target.host} cannot be dialled: ${refused}`);
  };
};

const lookedUp = async (lookup: Lookup, name: string): Promise<readonly string[]> => {
  const failed = (cause?: unknown) => new Transient("HostNotResolved", `the name ${name} could not be resolved`, { cause });
  const found = await lookup(name).catch((cause: unknown) => {
    throw failed(cause);
  });
  if (found.length === 0) throw failed();
  return found;
};

const overrideEndpoint = (from: string, to: string): Endpoint => {
  const { host, port } = splitPort(to);
  const address = host.startsWith("[") ? host.slice(1, -1) : host;
  if (isIP(address) === 0 || port === null || splitPort(from).port === null) {
    throw new Invalid("HostOverrideInvalid", `the override ${from}=${to} must be host:port=address:port`);
  }
  return { address, port };
};
