import { isIP, type Socket } from "node:net";
import type { Endpoint } from "../../../egress/resolver.ts";
import type { Target } from "../../../egress/target.ts";

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
): Promise<Socket> => {
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
      return target.scheme === "http" ? plain : await secured(plain, target.host, attemptMs, signal);
    } catch (error) {
      last = error;
    }
  }
  throw last;
};

const secured = (plain: Socket, host: string, withinMs: number, signal: AbortSignal): Promise<Socket> => {
  const name = isIP(host) === 0 ? { servername: host, host } : { host };
  return opened(
    process.getBuiltinModule("node:tls").connect({ socket: plain, ...name, ALPNProtocols: ["http/1.1"], minVersion: "TLSv1.2" }),
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
