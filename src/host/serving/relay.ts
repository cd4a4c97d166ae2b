import type { IncomingMessage, ServerResponse } from "node:http";
import { MessageChannel } from "node:worker_threads";
import { type HostUse, hopHeader } from "../../api/host.ts";
import { millis, roundedUse } from "../figures.ts";
import type { PoolReply } from "../worker-pool.ts";
import { Inward } from "./inward.ts";
import { Outward } from "./outward.ts";
import type { FromServed, ServedCall, ServedHead } from "./served-messages.ts";

/** Of a fault's words: some are the component's. */
const faultLength = 500;

export interface RelayDeps {
  /** Runs the call in an instance, unless the signal aborts before its turn; settles when that has ended. */
  readonly run: (call: ServedCall, signal: AbortSignal) => Promise<PoolReply>;
  readonly served: (line: ServedLine) => void;
  /** How long a client may take to read what is left when the instance has ended. */
  readonly drainMs: number;
}

/** What the host's log says of one request: no target, no header and nothing of a body. */
export interface ServedLine {
  readonly method: string;
  /** What was sent; null where the client went before anything could be. */
  readonly status: number | null;
  readonly queueMs: number;
  readonly runMs: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly use?: HostUse;
  /** Why the response is not what the component meant. */
  readonly fault?: string;
}

/** Brings one request to an instance and its response back, as both come: what is under way in either direction is bounded. */
export const relay = async (request: IncomingMessage, response: ServerResponse, { run, served, drainMs }: RelayDeps): Promise<void> => {
  const { port1: port, port2 } = new MessageChannel();
  const outward = new Outward(port, response);
  const inward = new Inward(port, request);
  const leaving = new AbortController();
  port.on("message", (message: FromServed) => {
    if (message.kind === "taken") inward.taken(message.count);
    else outward.take(message);
  });
  response.on("close", () => {
    if (response.writableFinished) return;
    leaving.abort();
    port.postMessage({ kind: "gone" });
  });
  inward.start();
  const { reply, queueMs, runMs } = await run({ kind: "serve", head: headOf(request), port: port2 }, leaving.signal);
  const isFailure = reply.kind === "failed";
  let fault: string | null = null;
  if (!isFailure || reply.ran) {
    // What the instance sent last is on its way: on this port, and so in no order with the reply.
    const tooLong = setTimeout(() => outward.giveUp(), drainMs);
    fault = await outward.ended;
    clearTimeout(tooLong);
  }
  if (isFailure) {
    outward.fail(reply.code, reply.ran);
    fault = leaving.signal.aborted && !reply.ran ? "the client went away" : `${reply.code}: ${reply.text}`;
  }
  port.close();
  inward.stop();
  served({
    method: request.method ?? "",
    status: outward.status,
    queueMs: millis(queueMs),
    runMs: millis(runMs),
    receivedBytes: inward.received,
    sentBytes: outward.sent,
    ...("use" in reply && reply.use && { use: roundedUse(reply.use) }),
    ...(fault !== null && { fault: fault.slice(0, faultLength) }),
  });
};

const headOf = ({ method = "GET", url = "/", headers, rawHeaders }: IncomingMessage): ServedHead => {
  const shown: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (name.toLowerCase() !== hopHeader) shown.push(name, value);
  }
  return { method, target: url, authority: headers.host ?? null, headers: shown };
};
