import { GuestError } from "./guest-error.ts";
import { NeverMade } from "./never-made.ts";

/** `wasi:sockets/network`: the one network, on which nothing is granted. */
export class Network {}

export class ResolveAddressStream extends NeverMade {}
export class TcpSocket extends NeverMade {}
export class UdpSocket extends NeverMade {}
export class IncomingDatagramStream extends NeverMade {}
export class OutgoingDatagramStream extends NeverMade {}

const accessDenied = (): never => {
  throw new GuestError("access-denied");
};

/**
 * `wasi:sockets`: imported by toolchains whose standard library has sockets, whether the tool uses them or not. Each way to a socket or a name is refused
 * as `access-denied`, so such a tool loads and learns that it has no network of this kind. Hosts are reached through `wasi:http` alone.
 */
export const sockets = {
  network: { Network, networkErrorCode: (): undefined => undefined },
  instanceNetwork: { instanceNetwork: () => new Network() },
  ipNameLookup: { ResolveAddressStream, resolveAddresses: accessDenied },
  tcp: { TcpSocket },
  tcpCreateSocket: { createTcpSocket: accessDenied },
  udp: { UdpSocket, IncomingDatagramStream, OutgoingDatagramStream },
  udpCreateSocket: { createUdpSocket: accessDenied },
};
