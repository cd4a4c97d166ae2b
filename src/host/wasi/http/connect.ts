import { isIP, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { HopReach } from "../../../api/host.ts";
import type { Endpoint } from "../../../egress/resolver.ts";
import type { Target } from "../../../egress/target.ts";

export interface Reached<E extends Endpoint> {
  readonly socket: Socket;
  readonly endpoint: E;
}

export type ServerEndpoint = HopReach["servers"][number];

/**
 * Connects to the first of the endpoints that answers; no name is looked up here. For https the certificate must be valid for the target's host, whatever
 * address was dialled, and the name goes out as SNI. Every endpoint gets an equal share of the time, so that one
 * that never answers does not keep the others from being tried. Rejects with the last endpoint's error.
 */
export const connectToAny = async (
  target: Target,
  endpoints: readonly Endpoint[],
  withinMs: number,
  signal: AbortSignal,
): Promise<Reached<Endpoint>> => {
  const secure = (plain: Socket, attemptMs: number) => secured(plain, namedAs(target.host), attemptMs, signal);
  return firstOf(endpoints, withinMs, signal, target.scheme === "http" ? null : () => secure);
};

/** The same for the server behind a bridge: over TLS as exactly the pod that was certified, where there is an authority to check it by. */
export const connectToServer = ({ servers, ca }: HopReach, withinMs: number, signal: AbortSignal): Promise<Reached<ServerEndpoint>> =>
  firstOf(
    servers,
    withinMs,
    signal,
    ca === undefined
      ? null
      : ({ serverName = "" }) =>
          (plain, attemptMs) =>
            secured(plain, { servername: serverName, host: serverName, ca, minVersion: "TLSv1.3" }, attemptMs, signal),
  );

type Secure = (plain: Socket, attemptMs: number) => Promise<Socket>;

const firstOf = async <E extends Endpoint>(
  endpoints: readonly E[],
  withinMs: number,
  signal: AbortSignal,
  secureFor: ((endpoint: E) => Secure) | null,
): Promise<Reached<E>> => {
  const attemptMs = Math.ceil(withinMs / Math.max(endpoints.length, 1));
  let last: unknown = new Error("there is no address to dial");
  for (const endpoint of endpoints) {
    signal.throwIfAborted();
    try {
      const plain = await opened(
        process.getBuiltinModule("node:net").connect({ host: endpoint.address, port: endpoint.port, noDelay: true }),
        "connect",
        attemptMs,
        signal,
      );
      return { socket: secureFor === null ? plain : await secureFor(endpoint)(plain, attemptMs), endpoint };
    } catch (error) {
      last = endedUnused(error) ? neverConnected(secureFor !== null, error) : error;
    }
  }
  throw last;
};

/** Of a connection that breaks later nobody knows what the far side has heard; of one that ended before it could be used it is known. */
const endedUnused = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");

const neverConnected = (isSecure: boolean, cause: unknown): Error =>
  Object.assign(new Error("the connection ended before it could be used", { cause }), { code: isSecure ? "EPROTO" : "ECONNREFUSED" });

const namedAs = (host: string): ConnectionOptions => (isIP(host) === 0 ? { servername: host, host } : { host });

const secured = (plain: Socket, options: ConnectionOptions, withinMs: number, signal: AbortSignal): Promise<Socket> => {
  return opened(
    process.getBuiltinModule("node:tls").connect({ socket: plain, ALPNProtocols: ["http/1.1"], minVersion: "TLSv1.2", ...options }),
    "secureConnect",
    withinMs,
    signal,
  );
};

const opened = <S extends Socket>(socket: S, event: "connect" | "secureConnect", withinMs: number, signal: AbortSignal): Promise<S> =>
  new Promise((resolve, reject) => {
    const tooLate = (): void => fail(Object.assign(new Error("the address does not answer"), { code: "ETIMEDOUT" }));
    const settle = (): void => {
      socket.setTimeout(0);
      socket.off("timeout", tooLate);
      socket.off("error", fail);
      socket.off(event, succeed);
      signal.removeEventListener("abort", abort);
    };
    const fail = (error: unknown): void => {
      settle();
      // An error may still follow the one that decided.
      socket.on("error", () => undefined);
      socket.destroy();
      reject(error);
    };
    const succeed = (): void => {
      settle();
      resolve(socket);
    };
    const abort = (): void => fail(signal.reason);
    socket.setTimeout(withinMs);
    socket.on("timeout", tooLate);
    socket.on("error", fail);
    socket.on(event, succeed);
    signal.addEventListener("abort", abort);
  });
