import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Sha256Digest } from "../api/digest.ts";
import { messageOf, Stalled, Transient } from "../api/errors.ts";
import type { HostConfig, SignedDocument } from "../api/host.ts";
import type { Endpoint } from "../catalogue/state.ts";
import { type HostListing, readListingAnswer } from "../grants/listing-answer.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../host/node-arguments.ts";
import type { ServedLine } from "../host/serving/relay.ts";
import type { GuestLine } from "../host/wasi/call-context.ts";

/** Longest wait for a host to say where it listens, and to take what is delivered: compiling a large component takes seconds. */
const startTimeoutMs = 20_000;
const deliveryTimeoutMs = 120_000;
/** Longer than a host waits for a list to change. */
const listingTimeoutMs = 60_000;
/** A host lets running calls finish for ten seconds; past this it is ended. */
const stopTimeoutMs = 12_000;

export interface HostOutput {
  /** A line that the guest wrote, or that the host said of itself. */
  readonly line: (stream: "guest-out" | "guest-err" | "host", text: string) => void;
}

export interface HostDeliveries {
  readonly keys: (boot: string) => SignedDocument;
  readonly listingRequest: (boot: string, known: Sha256Digest | null) => SignedDocument;
  readonly component: () => Promise<Uint8Array>;
  /** For an MCP server's host and its bridge's. */
  readonly hop?: (boot: string) => SignedDocument;
}

export interface Place {
  readonly address: string;
  readonly port: number;
}

/** A host that is ready for calls, as a child process. */
export interface HostProcess {
  readonly endpoint: Endpoint;
  readonly pid: number;
  /** Settles when the process has ended, whoever ended it. */
  readonly ended: Promise<string>;
  readonly deliverKeys: () => Promise<void>;
  /** Tells the host anew what the hop is; nothing where it has none. */
  readonly deliverHop: () => Promise<void>;
  /** Where an MCP server takes requests. */
  readonly serving: Place | null;
  /** Asks which tools the component lists, and waits for another list than the one of this digest. Throws `Transient` and `Invalid`. */
  readonly listing: (known: Sha256Digest | null, signal: AbortSignal) => Promise<HostListing>;
  /** Lets running calls finish, then ends the process. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a host under the same flags as a pod's and delivers keys and component to it. Throws `Stalled` where the host refuses the component (its code and
 * message say why), `Transient` where the process did not come up.
 */
export const startHostProcess = async (
  config: HostConfig,
  deliveries: HostDeliveries,
  output: HostOutput,
  signal: AbortSignal,
): Promise<HostProcess> => {
  const child = spawn(process.execPath, [...hostArguments(config), hostEntry, "-"], {
    stdio: ["pipe", "pipe", "pipe"],
    // Nothing of our own environment reaches a host: it may hold tokens.
    env: hostEnvironment(config),
  });
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, by) => resolve(by === null ? `exited with code ${code}` : `was ended by ${by}`));
    child.once("error", (error) => resolve(`could not be run: ${messageOf(error)}`));
  });
  // A host that ends early closes the pipe; `ended` tells of it.
  child.stdin.on("error", () => undefined);
  child.stdin.write(`${JSON.stringify(config)}\n`);
  createInterface({ input: child.stderr }).on("line", (text) => output.line("host", text));
  const lines = createInterface({ input: child.stdout });
  try {
    const { url, serving } = await listeningPlaces(child, lines, ended, signal);
    lines.on("line", (text) => guestLine(text, output));
    const boot = await get(`${url}/v1/boot`);
    const bootId = String(boot.boot);
    const deliverKeys = () => put(`${url}/v1/keys`, JSON.stringify(deliveries.keys(bootId)));
    const deliverHop = async () => {
      if (deliveries.hop) await put(`${url}/v1/hop`, JSON.stringify(deliveries.hop(bootId)));
    };
    await deliverKeys();
    await deliverHop();
    if (boot.hasComponent !== true) await put(`${url}/v1/component`, await deliveries.component());
    const listing = (known: Sha256Digest | null, asking: AbortSignal) =>
      listingFrom(`${url}/v1/listing`, deliveries.listingRequest(bootId, known), asking);
    const endpoint: Endpoint = { url, podUid: config.podUid, bootId, component: config.component, deadlineMs: config.limits.timeoutMs };
    return { endpoint, pid: child.pid ?? 0, ended, deliverKeys, deliverHop, serving, listing, stop: () => stop(child, ended) };
  } catch (error) {
    child.kill("SIGKILL");
    await ended;
    throw error;
  }
};

const listeningPlaces = async (
  child: ChildProcess,
  lines: Interface,
  ended: Promise<string>,
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly serving: Place | null }> => {
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]);
  const first = once(lines, "line", { signal: timeout }).then(([line]: unknown[]) => String(line));
  const line = await Promise.race([
    first,
    ended.then((how) => Promise.reject(new Transient("HostEnded", `the host process ${how} before it listened`))),
  ]);
  const { listening, serving = null } = JSON.parse(line) as { listening?: Place; serving?: Place };
  if (!listening)
    throw new Transient(
      "HostEnded",
      `the host process ${child.pid} said ${JSON.stringify(line.slice(0, 200))} instead of where it listens`,
    );
  return { url: `http://${listening.address}:${listening.port}`, serving };
};

const guestStreams = { stdout: "guest-out", stderr: "guest-err", host: "host" } as const;

const guestLine = (text: string, output: HostOutput): void => {
  try {
    const parsed = JSON.parse(text) as { guest?: GuestLine; served?: ServedLine; error?: string; reason?: string };
    if (parsed.served !== undefined) servedLine(parsed.served, output);
    else if (parsed.guest !== undefined) output.line(guestStreams[parsed.guest.stream], parsed.guest.text);
    else output.line("host", [parsed.error, parsed.reason].filter(Boolean).join(": ") || text);
  } catch {
    output.line("host", text);
  }
};

/** What went well is told by the call that it was for. */
const servedLine = ({ method, status, fault }: ServedLine, output: HostOutput): void => {
  if (fault !== undefined) output.line("host", `a ${method} was answered with ${status}: ${fault}`);
};

const get = async (url: string): Promise<Record<string, unknown>> => {
  const response = await fetch(url, { signal: AbortSignal.timeout(deliveryTimeoutMs) });
  return (await response.json()) as Record<string, unknown>;
};

const put = async (url: string, body: string | Uint8Array): Promise<void> => {
  const response = await fetch(url, { method: "PUT", body: Buffer.from(body), signal: AbortSignal.timeout(deliveryTimeoutMs) });
  if (response.ok) {
    await response.arrayBuffer();
    return;
  }
  const { code, message } = (await response.json()) as { code?: string; message?: string };
  const text = message ?? `the host answered with status ${response.status}`;
  throw response.status === 503 ? new Transient(code ?? "HostFailed", text) : new Stalled(code ?? "HostFailed", text);
};

const listingFrom = async (url: string, request: SignedDocument, signal: AbortSignal): Promise<HostListing> => {
  const within = AbortSignal.any([signal, AbortSignal.timeout(listingTimeoutMs)]);
  const response = await fetch(url, { method: "POST", body: JSON.stringify(request), signal: within });
  const text = await response.text();
  if (!response.ok) throw new Transient("ListingFailed", `the host answered with status ${response.status}`);
  return readListingAnswer(text);
};

const stop = async (child: ChildProcess, ended: Promise<string>): Promise<void> => {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
  await ended;
  clearTimeout(timer);
};
