import { lookup } from "node:dns/promises";
import type { WitImport } from "../api/wit.ts";

import { parseAllowedHost } from "../egress/allowed-host.ts";
import { type AddressTable, type Resolver, systemResolver, tableResolver } from "../egress/resolver.ts";
import type { GuestImports } from "./guest-calls.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import { createWasi } from "./wasi/create.ts";
import type { WasiSetup } from "./worker-protocol.ts";

/** Makes what each instance imports, from what the workload was granted. */
export interface GuestImportMaker {
  make(): GuestImports;
  /** Takes the addresses that may be dialled from now on. */
  dialOnly(table: Readonly<Record<string, readonly string[]>>): void;
}

/** Throws `Invalid` where an allowed host or an override of the setup can't be read. */
export const guestImports = (setup: WasiSetup, imports: readonly WitImport[], log: (line: GuestLine) => void): GuestImportMaker => {
  let table: AddressTable = new Map();
  const dial = setup.resolver === "table" ? tableResolver(() => table) : systemDial(setup);
  const allowedHosts = setup.allowedHosts.map((entry) => parseAllowedHost(entry, { allowAny: true }));
  const { environment, mounts } = setup;
  return {
    make: () => {
      const wasi = createWasi({ environment, mounts, allowedHosts, dial, log });
      return { imports: wasi.importsFor(imports), renew: wasi.renew, useSince: wasi.useSince, dispose: wasi.dispose };
    },
    dialOnly: (addresses) => {
      table = new Map(Object.entries(addresses));
    },
  };
};

const systemDial = (setup: WasiSetup): Resolver =>
  systemResolver(
    async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    { privateRanges: setup.privateRanges },
    setup.hostOverrides,
  );
