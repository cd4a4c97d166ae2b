import { Resolver } from "node:dns/promises";
import { Transient } from "../../api/errors.ts";
import type { NameAnswer } from "../../egress/name-addresses.ts";

/** Asks for all addresses of a name. An empty answer says that there are none; rejects with `Transient` (`NameServiceFailed`) where nobody could tell. */
export type NameService = (name: string) => Promise<NameAnswer>;

export interface NameServers {
  /** `10.96.0.10`, `[2001:db8::53]:5353`; by default those of the system. */
  readonly servers?: readonly string[];
  readonly timeoutMs: number;
  readonly tries: number;
}

/** Both families by DNS, without search domains and without the machine's hosts file: a name means the same whoever asks. */
export const nameService = ({ servers, timeoutMs, tries }: NameServers): NameService => {
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (servers !== undefined && servers.length > 0) resolver.setServers(servers);
  return async (name) => {
    const families = await Promise.allSettled([resolver.resolve4(name, { ttl: true }), resolver.resolve6(name, { ttl: true })]);
    const found = families.flatMap((family) => (family.status === "fulfilled" ? family.value : []));
    const fault = families.find((family) => family.status === "rejected" && !saysNone(family.reason));
    // One family that nobody could tell is no reason to give up the other.
    if (found.length > 0 || fault === undefined) return found;
    const cause = (fault as PromiseRejectedResult).reason;
    throw new Transient("NameServiceFailed", `the name service did not tell (${codeOf(cause)})`, { cause });
  };
};

/** An answer, unlike a timeout or a server's failure. */
const saysNone = (error: unknown): boolean => ["ENOTFOUND", "ENODATA"].includes(codeOf(error));

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error ? String(error.code) : "no code";
