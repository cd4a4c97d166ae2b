import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { BuiltInNode } from "../cluster/start-node.ts";

/** What a pod sends that is past every policy, counted by the node's own packet filter behind all others: in the kernel, whatever the sender makes of the answer. */
export interface PassedPackets extends AsyncDisposable {
  /** Where packets went that this address sent first (not answers to who asked), after the address translation of Services: `tcp 20.10.0.7 80`, sorted. */
  from(address: string): Promise<string[]>;
}

/** Filters work at priority 0, and what they hold back doesn't come to a later one. Between pods of one bridge, too: the node's kernel gives those to the packet filter. */
const rules = (table: string): string => `
table inet ${table} {
  set passed4 { type ipv4_addr . inet_proto . ipv4_addr . inet_service; size 65535; flags dynamic; }
  set passed6 { type ipv6_addr . inet_proto . ipv6_addr . inet_service; size 65535; flags dynamic; }
  chain note {
    ct direction original update @passed4 { ip saddr . meta l4proto . ip daddr . th dport }
    ct direction original update @passed6 { ip6 saddr . meta l4proto . ip6 daddr . th dport }
  }
  chain forward {
    type filter hook forward priority 300;
    jump note
  }
  chain input {
    type filter hook input priority 300;
    jump note
  }
}
`;

export const countPackets = async ({ command }: BuiltInNode): Promise<PassedPackets> => {
  const table = `ambit_${randomBytes(4).toString("hex")}`;
  const nft = async (args: readonly string[], input = ""): Promise<string> => {
    const [file, ...before] = command;
    const child = spawn(file, [...before, "nft", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.end(input);
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    if (code !== 0) throw new Error(`nft ${args.join(" ")} ended with ${code}`);
    return out;
  };
  await nft(["-f", "-"], rules(table));

  const entries = async (set: string): Promise<readonly (readonly [string, ...unknown[]])[]> => {
    const { nftables }: { nftables: readonly { set?: { elem?: readonly { concat: [string, ...unknown[]] }[] } }[] } = JSON.parse(
      await nft(["--json", "list", "set", "inet", table, set]),
    );
    return nftables.flatMap(({ set }) => set?.elem ?? []).map(({ concat }) => concat);
  };
  return {
    from: async (address) => {
      const all = [...(await entries("passed4")), ...(await entries("passed6"))];
      return all.flatMap(([source, protocol, ...to]) => (source === address ? [[protocol, ...to].join(" ")] : [])).sort();
    },
    [Symbol.asyncDispose]: async () => {
      await nft(["delete", "table", "inet", table]);
    },
  };
};
