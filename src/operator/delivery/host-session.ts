import type { KeyObject } from "node:crypto";
import { TLSSocket } from "node:tls";
import { buildConnector, Client } from "undici";
import type { Sha256Digest } from "../../api/digest.ts";
import { messageOf, Stalled, Transient } from "../../api/errors.ts";
import { announcementHeader, type SignedDocument } from "../../api/host.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../api/json.ts";
import { type HostListing, readListingAnswer } from "../../grants/listing-answer.ts";
import { type HostIdentity, hostTls } from "../../identity/host-identity.ts";
import { type RootKeys, signedByRoot } from "./keyring.ts";

/** Where a host listens. */
export interface HostPlace {
  readonly address: string;
  readonly port: number;
}

/** What a host says of itself; see docs/host.md. */
export interface BootAnswer {
  readonly boot: string;
  readonly component: string;
  readonly pod: string;
  readonly hasComponent: boolean;
}

/** Somebody answers at a pod's address, over TLS, who has not been proved to be the pod's host: `publicKey` is what the answer came under. */
export interface FirstContact {
  readonly said: BootAnswer;
  readonly publicKey: KeyObject;
}

const connectMs = 5_000;
/** For a short answer; a host that is asked for one has nothing else to do first. */
const answerMs = 10_000;
/** A host compiles what it is sent before it answers. */
const componentMs = 120_000;
const largestAnswer = 64 * 1024;
/** A component may list thousands of tools. */
const largestListing = 32 * 1024 * 1024;
/** How long a host may wait for its list to become another. */
const listingPatienceMs = 25_000;

/**
 * Asks who is there, trusting nobody: nothing is sent but the question. Throws `Transient` (`HostUnreachable`, `HostAnswerMalformed`).
 */
export const meetHost = async (place: HostPlace, signal: AbortSignal): Promise<FirstContact> => {
  const keys: (KeyObject | undefined)[] = [];
  const connect = buildConnector({ rejectUnauthorized: false, maxCachedSessions: 0, minVersion: "TLSv1.3", timeout: connectMs });
  const client = new Client(originOf(place), {
    maxResponseSize: largestAnswer,
    connect: (options, done) =>
      connect(options, (error, socket) => {
        if (error) return done(error, null);
        keys.push(socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.publicKey : undefined);
        if (socket) done(null, socket);
      }),
  });
  try {
    const said = bootOf(await send(client, { method: "GET", path: "/v1/boot" }, answerMs, signal));
    const [publicKey, another] = keys;
    // An answer must have come under the key that it is taken for, so there may have been one connection only.
    if (publicKey === undefined || another !== undefined) throw new Transient("HostAnswerMalformed", "the host's key was not seen");
    return { said, publicKey };
  } finally {
    await client.destroy();
  }
};

/** Hands over a document that is signed and that only one start of a host takes, so it does not matter who receives it. */
export const handOver = async (place: HostPlace, path: string, document: SignedDocument, signal: AbortSignal): Promise<void> => {
  const client = new Client(originOf(place), {
    maxResponseSize: largestAnswer,
    connect: { rejectUnauthorized: false, timeout: connectMs },
  });
  try {
    await send(client, { method: "PUT", path, body: JSON.stringify(document) }, answerMs, signal);
  } finally {
    await client.destroy();
  }
};

/**
 * A connection to the host of one start of one pod, or to nobody. What is rejected: `Transient` (`HostUnreachable`, and codes of a host that will take it later), `Stalled`
 * with the host's code and words where it won't.
 */
export interface HostSession {
  boot(): Promise<BootAnswer>;
  put(path: "/v1/keys" | "/v1/addresses" | "/v1/hop", document: SignedDocument): Promise<void>;
  putComponent(bytes: Uint8Array): Promise<void>;
  /** Any other question: its answer's JSON object. */
  ask(request: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string }): Promise<JsonObject>;
  close(): Promise<void>;
}

export const openSession = (place: HostPlace, identity: HostIdentity, root: RootKeys, signal: AbortSignal): HostSession => {
  const ca = root.hosts.certificate;
  const put = async (path: string, body: Buffer, timeoutMs: number): Promise<void> => {
    const announced = signedByRoot(root, { kind: "announcement", boot: identity.boot, path, bytes: body.byteLength });
    const headers = { [announcementHeader]: Buffer.from(JSON.stringify(announced)).toString("base64url") };
    await send(client, { method: "PUT", path, body, headers }, timeoutMs, signal);
  };
  const client = new Client(originOf(place), { maxResponseSize: largestAnswer, connect: { ...hostTls(identity, ca), timeout: connectMs } });
  return {
    boot: async () => bootOf(await send(client, { method: "GET", path: "/v1/boot" }, answerMs, signal)),
    put: (path, document) => put(path, Buffer.from(JSON.stringify(document)), answerMs),
    putComponent: ({ buffer, byteOffset, byteLength }) => put("/v1/component", Buffer.from(buffer, byteOffset, byteLength), componentMs),
    ask: (request) => send(client, request, answerMs, signal),
    close: () => client.destroy(),
  };
};

/** Asks one host for the tools that its component lists, over a connection of its own, since an answer may wait long for another list. */
export interface ListingSession {
  /** Throws `Transient`, `Stalled` (`ListsNoTools`) and `Invalid` (`ListingMalformed`, `ListingTooLarge`, `Json…`). */
  next(known: Sha256Digest | null): Promise<HostListing>;
  close(): Promise<void>;
}

export const openListing = (place: HostPlace, identity: HostIdentity, root: RootKeys, signal: AbortSignal): ListingSession => {
  const tls = { ...hostTls(identity, root.hosts.certificate), timeout: connectMs };
  const client = new Client(originOf(place), { maxResponseSize: largestListing, connect: tls });
  return {
    next: async (known) => {
      const document = signedByRoot(root, { kind: "listing", boot: identity.boot, known, waitMs: listingPatienceMs });
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(listingPatienceMs + answerMs)]);
      const request: HostRequest = { method: "POST", path: "/v1/listing", body: JSON.stringify(document) };
      const { status, text } = await exchange(client, request, bounded, signal);
      if (status !== 200) throw refusalOf(status, objectOf(text, status));
      return readListingAnswer(text);
    },
    close: () => client.destroy(),
  };
};

interface HostRequest {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

const send = async (client: Client, request: HostRequest, timeoutMs: number, signal: AbortSignal): Promise<JsonObject> => {
  // The whole exchange has to end in time, however slowly a host drips.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const { status, text } = await exchange(client, request, bounded, signal);
  const answer = objectOf(text, status);
  if (status === 200) return answer;
  throw refusalOf(status, answer);
};

const refusalOf = (status: number, answer: JsonObject): Stalled | Transient => {
  const code = typeof answer.code === "string" ? answer.code.slice(0, 64) : "HostFailed";
  const message = typeof answer.message === "string" ? answer.message.slice(0, 1000) : `the host answered with status ${status}`;
  return isPassing(status, code) ? new Transient(code, message) : new Stalled(code, message);
};

const exchange = async (client: Client, request: HostRequest, bounded: AbortSignal, signal: AbortSignal) => {
  const { method, path, body, headers = {} } = request;
  try {
    const response = await client.request({
      method,
      path,
      headers,
      body: body ?? null,
      signal: bounded,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { status: response.statusCode, text: await response.body.text() };
  } catch (thrown) {
    signal.throwIfAborted();
    throw new Transient("HostUnreachable", `${method} ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
};

/** A host that restarted meanwhile, or whose key set is of a clock that is ahead of ours, takes the same later. */
const isPassing = (status: number, code: string): boolean =>
  status === 503 || code === "DeliveryMisdirected" || code === "DeliveryOutdated";

const objectOf = (text: string, status: number): JsonObject => {
  try {
    const answer = parseJson(text, { maxLength: largestAnswer, maxDepth: 8 });
    if (isJsonObject(answer)) return answer;
  } catch (thrown) {
    throw new Transient("HostAnswerMalformed", `the host answered with status ${status} and no JSON`, { cause: thrown });
  }
  throw new Transient("HostAnswerMalformed", `the host answered with status ${status} and no JSON object`);
};

const bootOf = ({ boot, component, pod, hasComponent }: JsonObject): BootAnswer => {
  if (typeof boot !== "string" || typeof component !== "string" || typeof pod !== "string" || typeof hasComponent !== "boolean") {
    throw new Transient("HostAnswerMalformed", "the host does not say who it is");
  }
  return { boot, component, pod, hasComponent };
};

const originOf = ({ address, port }: HostPlace): string => `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
