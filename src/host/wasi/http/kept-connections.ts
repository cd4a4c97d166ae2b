import type { Agent } from "node:http";
import type { Socket } from "node:net";
import type { Target } from "../../../egress/target.ts";
import { httpClient } from "./client.ts";

/** Connections kept at once by a worker thread, and for how long unused and in all. */
const mostIdle = 8;
const idleMs = 15_000;
const ageMs = 300_000;
/** Servers end idle connections after two seconds and more, and by an unlucky moment a request crosses that end. What can't be sent twice isn't sent so late. */
const freshMs = 1000;

/** Where a connection leads, as far as whoever uses it again must find it the same. */
export interface Route {
  /** What it was opened for. */
  readonly target: Target;
  readonly address: string;
  readonly port: number;
  /** By what a server behind a bridge was verified: certificates in PEM. Empty for the system's. */
  readonly trust: string;
  readonly serverName: string;
}

const isSameTarget = (a: Target, b: Target): boolean => a.scheme === b.scheme && a.host === b.host && a.port === b.port;

export const isSameRoute = (a: Route, b: Route): boolean =>
  isSameTarget(a.target, b.target) && a.address === b.address && a.port === b.port && a.trust === b.trust && a.serverName === b.serverName;

/** One connection, used by one request at a time. `agent` is what lets Node's client tell us that a response was whole; without one it is used once. */
export class Connection {
  readonly socket: Socket;
  readonly route: Route;
  readonly agent: Agent | undefined;
  readonly #openedAt: number;
  #idleSince = 0;
  isReused = false;
  /** Whose request it carries learns of its errors. */
  failed: ((error: unknown) => void) | undefined;

  constructor(socket: Socket, route: Route, openedAt: number, becameIdle?: (connection: Connection) => boolean) {
    this.socket = socket;
    this.route = route;
    this.#openedAt = openedAt;
    this.agent = becameIdle && agentFor(socket, () => becameIdle(this));
    socket.on("error", (error) => this.failed?.(error));
  }

  rest(now: number): void {
    this.#idleSince = now;
  }

  wake(): void {
    this.isReused = true;
    this.socket.setTimeout(0);
  }

  isUsable(now: number, isRepeatable: boolean): boolean {
    const { destroyed, readable, writable } = this.socket;
    const idle = now - this.#idleSince;
    return !destroyed && readable && writable && idle < (isRepeatable ? idleMs : freshMs) && !this.isOld(now);
  }

  isOld(now: number): boolean {
    return now - this.#openedAt > ageMs;
  }

  end(): void {
    this.socket.destroy();
  }
}

/**
 * Node's own rules of what may be kept (RFC 9112, 9.3), its timer, which heeds the server's `keep-alive` header, and its guard: a connection that brings
 * anything while nothing was asked is ended.
 */
const agentFor = (socket: Socket, becameIdle: () => boolean): Agent => {
  const { Agent } = httpClient();
  const agent = new Agent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: idleMs });
  const keep = agent.keepSocketAlive.bind(agent);
  agent.createConnection = () => socket;
  // Typed as giving nothing, documented as saying whether the socket is kept.
  agent.keepSocketAlive = (kept) => Boolean(keep(kept)) && becameIdle();
  return agent;
};

/**
 * Connections that carried a whole exchange, kept for the next request to the same place: of any instance in this worker thread, all of one component.
 *
 * A worker has its own, so that no bytes cross threads and a worker that is ended ends them. What was read in part, or not fully sent, is never here.
 */
export class KeptConnections {
  readonly #now: () => number;
  #idle: Connection[] = [];

  /** `now` in milliseconds, on a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** A connection just opened, which comes to be kept when its exchange was whole. */
  opened(socket: Socket, route: Route): Connection {
    const connection = new Connection(socket, route, this.#now(), (whole) => this.#keep(whole));
    socket.once("close", () => {
      this.#idle = this.#idle.filter((other) => other !== connection);
    });
    return connection;
  }

  has(target: Target): boolean {
    return this.#idle.some(({ route }) => isSameTarget(route.target, target));
  }

  /**
   * Takes one that leads to any of the routes. `isRepeatable`: whether the request may be sent again where the server ended the connection meanwhile.
   * A turn of the event loop shows whether it has already, or has said what nobody asked for.
   */
  async take(routes: readonly Route[], isRepeatable: boolean): Promise<Connection | null> {
    for (;;) {
      const at = this.#idle.findLastIndex(
        (connection) => routes.some((route) => isSameRoute(route, connection.route)) && connection.isUsable(this.#now(), isRepeatable),
      );
      const [connection] = at < 0 ? [] : this.#idle.splice(at, 1);
      if (connection === undefined) return null;
      // Two: what came during the turn that runs now is seen in the next.
      await turn();
      await turn();
      if (connection.isUsable(this.#now(), isRepeatable)) {
        connection.wake();
        return connection;
      }
      connection.end();
    }
  }

  /** Ends those that lead where no request may go any more. */
  keepOnly(mayGo: (route: Route) => boolean): void {
    for (const connection of this.#idle) if (!mayGo(connection.route)) connection.end();
    this.#idle = this.#idle.filter(({ route }) => mayGo(route));
  }

  #keep(connection: Connection): boolean {
    const now = this.#now();
    if (connection.isOld(now)) return false;
    connection.rest(now);
    this.#idle.push(connection);
    while (this.#idle.length > mostIdle) this.#idle.shift()?.end();
    return true;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
