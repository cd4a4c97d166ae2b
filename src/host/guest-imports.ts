import { lookup } from "node:dns/promises";
import type { HopReach } from "../api/host.ts";
import type { WitImport } from "../api/wit.ts";

import { parseAllowedHost } from "../egress/allowed-host.ts";
import { type AddressTable, type Resolver, systemResolver, tableAddresses, tableResolver } from "../egress/resolver.ts";
import { GuestEnvironments } from "./given/environment.ts";
import type { GuestImports } from "./guest-calls.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import { createWasi } from "./wasi/create.ts";
import { isSameRoute, KeptConnections } from "./wasi/http/kept-connections.ts";
import { serverRoute } from "./wasi/http/reach.ts";
import type { WasiSetup } from "./worker-protocol.ts";

/** Makes what each instance imports, from what the workload was granted. */
export interface GuestImportMaker {
  make(): GuestImports;
  /** Takes the addresses that may be dialled from now on. */
  dialOnly(table: Readonly<Record<string, readonly string[]>>): void;
  /** Takes where the server behind this bridge is from now on. */
  hopTo(reach: HopReach): void;
}

/** Throws `Invalid` where an allowed host or an override of the setup can't be read. */
export const guestImports = (setup: WasiSetup, imports: readonly WitImport[], log: (line: GuestLine) => void): GuestImportMaker => {
  let table: AddressTable = new Map();
  const dial = setup.resolver === "table" ? tableResolver(() => table) : systemDial(setup);
  const { hopAuthority } = setup;
  let reach: HopReach | null = null;
  const hop = hopAuthority === null ? null : { authority: hopAuthority, reach: () => reach };
  const granted = hop ? [...setup.allowedHosts, `http://${hop.authority}`] : setup.allowedHosts;
  const allowedHosts = granted.map((entry) => parseAllowedHost(entry, { allowAny: true }));
  const { mounts } = setup;
  const connections = new KeptConnections(() => performance.now());
  const environments = new GuestEnvironments(setup);
  return {
    make: () => {
      const { variables: environment, isCurrent } = environments.now();
      const wasi = createWasi({ environment, mounts, allowedHosts, dial, hop, connections, log });
      const { renew, served, useSince, dispose } = wasi;
      return { imports: wasi.importsFor(imports), renew, served, useSince, isCurrent, dispose };
    },
    dialOnly: (addresses) => {
      table = new Map(Object.entries(addresses));
      connections.keepOnly(({ target, address }) => target.host === hopAuthority || tableAddresses(table, target).includes(address));
    },
    hopTo: (next) => {
      reach = next;
      connections.keepOnly(
        (route) =>
          route.target.host !== hopAuthority || next.servers.some((server) => isSameRoute(route, serverRoute(route.target, next, server))),
      );
    },
  };
};

const systemDial = (setup: WasiSetup): Resolver =>
  systemResolver(
    async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    { privateRanges: setup.privateRanges },
    setup.hostOverrides,
  );
