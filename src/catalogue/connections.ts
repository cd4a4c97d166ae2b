import type { Socket } from "node:net";

export interface ConnectionLimits {
  readonly connections: number;
  /** Of one client's address. */
  readonly connectionsPerAddress: number;
}

/** What of a connection says which it is, be it seen below TLS or above. */
export type ConnectionEnds = Pick<Socket, "remoteAddress" | "remotePort">;

/**
 * Bounds the connections that a server holds, so that whoever opens many keeps nobody else out: one address has a share, and where there are too many in all,
 * the oldest one whose caller is not known yet is closed for the newest.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #ofAddress = new Map<string, number>();
  /** Oldest first. */
  readonly #unknown = new Map<string, Socket>();
  #open = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Takes in a new connection, and closes one if that is too many. */
  opened(socket: Socket): void {
    const { remoteAddress: address = "" } = socket;
    const ends = endsOf(socket);
    const ofAddress = (this.#ofAddress.get(address) ?? 0) + 1;
    this.#open++;
    this.#ofAddress.set(address, ofAddress);
    this.#unknown.set(ends, socket);
    socket.once("close", () => {
      this.#open--;
      this.#unknown.delete(ends);
      const left = (this.#ofAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#ofAddress.set(address, left);
      else this.#ofAddress.delete(address);
    });
    if (ofAddress > this.#limits.connectionsPerAddress) socket.destroy();
    else if (this.#open > this.#limits.connections) this.#closeOldestUnknown();
  }

  /** A request on it came with a valid token: nobody newer takes its place. */
  callerIsKnown(connection: ConnectionEnds): void {
    this.#unknown.delete(endsOf(connection));
  }

  /** The newest is among them. */
  #closeOldestUnknown(): void {
    for (const [ends, socket] of this.#unknown) {
      this.#unknown.delete(ends);
      if (socket.destroyed) continue;
      socket.destroy();
      return;
    }
  }
}

const endsOf = ({ remoteAddress, remotePort }: ConnectionEnds): string => `${remoteAddress} ${remotePort}`;
