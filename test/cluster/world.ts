import { execFile } from "node:child_process";
import { rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { inNamespace } from "./network.ts";

/** What lies outside of the node, in a network namespace of its own: any address and any name that a test wants to exist. */
export interface World {
  /** Start of a command line that runs out there: a server, or a capture of what arrives. */
  readonly command: readonly [string, ...string[]];
  /** Makes an address exist. It answers pings, and servers started with `command` can listen on it. */
  addAddress(address: string): Promise<void>;
  removeAddress(address: string): Promise<void>;
  /** The names that exist, and no others, from a second later on. */
  setNames(names: Readonly<Record<string, readonly string[]>>): Promise<void>;
}

export const worldIn = (namespace: string, hostsFile: string): World => {
  const ip = (...args: string[]) => promisify(execFile)("ip", ["-n", namespace, ...args]);
  return {
    command: inNamespace(namespace),
    addAddress: async (address) => {
      await ip("addr", "replace", `${address}/32`, "dev", "lo");
    },
    removeAddress: async (address) => {
      await ip("addr", "del", `${address}/32`, "dev", "lo");
    },
    setNames: async (names) => {
      const lines = Object.entries(names).flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}\n`));
      const written = `${hostsFile}.new`;
      await writeFile(written, lines.join(""));
      await rename(written, hostsFile);
    },
  };
};
