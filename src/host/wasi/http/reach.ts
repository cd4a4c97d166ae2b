import type { Socket } from "node:net";
import type { HopReach } from "../../../api/host.ts";
import type { Target } from "../../../egress/target.ts";
import type { WasiOptions } from "../call-context.ts";
import { connectToAny, connectToServer } from "./connect.ts";
import { ExchangeFailure } from "./error-code.ts";
import type { Route } from "./kept-connections.ts";

/** Where a request may go now. */
export interface Reach {
  readonly routes: readonly Route[];
  /** What a server behind a bridge wants to be shown. */
  readonly credential: string | null;
  readonly open: (withinMs: number, signal: AbortSignal) => Promise<{ readonly socket: Socket; readonly route: Route }>;
}

/** Rejects with what resolvers throw, and with `ExchangeFailure` where no server is ready. */
export const reachOf = async ({ dial, hop }: Pick<WasiOptions, "dial" | "hop">, target: Target): Promise<Reach> => {
  if (target.host === hop?.authority) return reachOfServer(hop.reach(), target);
  const endpoints = await dial(target);
  const routeTo = ({ address, port }: Pick<Route, "address" | "port">): Route => ({
    target,
    address,
    port,
    trust: "",
    serverName: target.host,
  });
  return {
    routes: endpoints.map(routeTo),
    credential: null,
    open: async (withinMs, signal) => {
      const { socket, endpoint } = await connectToAny(target, endpoints, withinMs, signal);
      return { socket, route: routeTo(endpoint) };
    },
  };
};

const reachOfServer = (reach: HopReach | null, target: Target): Reach => {
  if (!reach || reach.servers.length === 0)
    throw new ExchangeFailure({ tag: "connection-refused" }, `no server of ${target.host} is ready`);
  return {
    routes: reach.servers.map((server) => serverRoute(target, reach, server)),
    credential: reach.credential,
    open: async (withinMs, signal) => {
      const { socket, endpoint } = await connectToServer(reach, withinMs, signal);
      return { socket, route: serverRoute(target, reach, endpoint) };
    },
  };
};

/** A server's route: under another authority's certificates it is another. */
export const serverRoute = (target: Target, { ca = "" }: HopReach, server: HopReach["servers"][number]): Route => {
  const { address, port, serverName = "" } = server;
  return { target, address, port, trust: ca, serverName };
};
