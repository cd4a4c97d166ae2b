import type { ClientRequest, IncomingMessage } from "node:http";
import { messageOf } from "../../../api/errors.ts";
import { hopHeader } from "../../../api/host.ts";
import type { AllowedHost } from "../../../egress/allowed-host.ts";
import type { Target } from "../../../egress/target.ts";
import type { CallContext } from "../call-context.ts";
import type { RequestNote } from "../made-requests.ts";
import { Bell } from "./bell.ts";
import { httpClient } from "./client.ts";
import { type ErrorCode, ExchangeFailure, errorCodeOf, onceConnected } from "./error-code.ts";
import { Fields } from "./fields.ts";
import { IncomingResponse, ResponseBody } from "./incoming-response.ts";
import { Connection } from "./kept-connections.ts";
import type { RequestHead } from "./outgoing-request.ts";
import { type Reach, reachOf } from "./reach.ts";

type Outcome = { readonly tag: "ok"; readonly val: IncomingResponse } | { readonly tag: "err"; readonly val: ErrorCode };

/** Where a request goes, and the entry of the allowed hosts that admits it. */
export interface Granted {
  readonly target: Target;
  readonly by: AllowedHost;
}

/** How long each step may take, in milliseconds; null: as long as the call. */
export interface ExchangeTimeouts {
  readonly connectMs: number;
  readonly firstByteMs: number | null;
  readonly betweenBytesMs: number | null;
}

/** One request and its response, alone on its connection. What touches the network is here, in `connect.ts` and in `kept-connections.ts`. */
export class Exchange implements Disposable {
  readonly #context: CallContext;
  readonly #target: Target;
  readonly #head: RequestHead;
  readonly #timeouts: ExchangeTimeouts;
  readonly #settledBell = new Bell();
  readonly #stop = new AbortController();
  #outcome: Outcome | null = null;
  /** What the server behind a bridge wants to be shown. */
  #credential: string | null = null;
  #connection: Connection | null = null;
  /** What the connection had brought before this request. */
  #readBefore = 0;
  #withdrawSilence: () => void = () => undefined;
  #request: ClientRequest | null = null;
  #responseBody: ResponseBody | null = null;
  #timer: NodeJS.Timeout | null = null;
  readonly #note: RequestNote;

  constructor(context: CallContext, { target, by }: Granted, head: RequestHead, timeouts: ExchangeTimeouts) {
    this.#note = context.made.note(head.method, by.entry);
    this.#context = context;
    this.#target = target;
    this.#head = head;
    this.#timeouts = timeouts;
  }

  readonly settled = (): Outcome | null => this.#outcome;
  readonly wait = (wake: () => void): (() => void) => this.#settledBell.wait(wake);
  readonly hurry = (): void => this.#head.body.start();
  readonly abandon = (): void => this[Symbol.dispose]();

  /** Sends the request. Never rejects: what goes wrong is the outcome. */
  run(): Promise<void> {
    return this.#attempt(true);
  }

  async #attempt(mayReuse: boolean): Promise<void> {
    try {
      this.#within(this.#timeouts.connectMs, { tag: "connection-timeout" });
      const reach = await reachOf(this.#context.options, this.#target);
      this.#credential = reach.credential;
      const connection = (mayReuse ? await this.#kept(reach) : null) ?? (await this.#opened(reach));
      this.#withdrawTimer();
      this.#connection = connection;
      connection.failed = (error) => this.#fail(error);
      await this.#bodyStarted();
      this.#send(connection);
    } catch (error) {
      this.#fail(error);
    }
  }

  [Symbol.dispose](): void {
    this.#fail(new ExchangeFailure({ tag: "connection-terminated" }, "the call gave the request up"));
  }

  /** Taken once the body is there: while the guest still writes it, the server may end a connection that nobody uses. */
  async #kept({ routes }: Reach): Promise<Connection | null> {
    const { connections } = this.#context.options;
    if (connections === null || authenticatesConnection(this.#head) || !connections.has(this.#target)) return null;
    this.#withdrawTimer();
    await this.#bodyStarted();
    const kept = await connections.take(routes, isRepeatable(this.#head));
    if (this.#stop.signal.aborted) kept?.end();
    this.#stop.signal.throwIfAborted();
    if (kept === null) this.#within(this.#timeouts.connectMs, { tag: "connection-timeout" });
    return kept;
  }

  async #opened(reach: Reach): Promise<Connection> {
    const { connections } = this.#context.options;
    const { socket, route } = await reach.open(this.#timeouts.connectMs, this.#stop.signal);
    return connections === null || authenticatesConnection(this.#head)
      ? new Connection(socket, route, 0)
      : connections.opened(socket, route);
  }

  async #bodyStarted(): Promise<void> {
    if (!this.#head.body.isStarted) await new Promise<void>((resolve) => this.#head.body.started.wait(resolve));
    const failure = this.#head.body.failure;
    if (failure !== null) throw new ExchangeFailure(failure);
    this.#stop.signal.throwIfAborted();
  }

  #send(connection: Connection): void {
    const { body } = this.#head;
    const { agent, socket } = connection;
    // From here on the client tells of the connection's errors.
    connection.failed = undefined;
    this.#readBefore = socket.bytesRead;
    const request = httpClient().request({
      ...(agent === undefined ? { createConnection: () => socket } : { agent }),
      method: this.#head.method,
      path: this.#head.path,
      headers: [
        ...sentHeaders(this.#target, this.#head),
        ...["connection", agent === undefined ? "close" : "keep-alive"],
        ...(this.#credential === null ? [] : [hopHeader, this.#credential]),
      ],
      setHost: false,
      maxHeaderSize: this.#context.options.budgets.headerBytes,
      insecureHTTPParser: false,
    });
    this.#request = request;
    request.on("error", (error) => this.#broken(connection, request, error));
    request.on("response", (message) => this.#receive(message));
    request.on("upgrade", () => this.#fail(new ExchangeFailure({ tag: "HTTP-upgrade-failed" })));
    request.on("finish", () => {
      if (this.#outcome === null) this.#within(this.#timeouts.firstByteMs, { tag: "HTTP-response-timeout" });
    });
    body.pipeTo(request);
  }

  #receive(message: IncomingMessage): void {
    this.#withdrawTimer();
    this.#note.answered(message.statusCode ?? 0);
    const between = this.#timeouts.betweenBytesMs;
    if (between !== null) {
      this.#failInSilence(between);
    }
    const body = new ResponseBody(this.#context, message, this.#target.host, this.abandon);
    this.#responseBody = body;
    message.on("end", () => this.#finish());
    this.#settle({
      tag: "ok",
      val: new IncomingResponse(this.#context, message.statusCode ?? 0, Fields.received(message.rawHeaders), body),
    });
  }

  #fail(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const found = errorCodeOf(error, this.#target.host);
    const code = this.#connection === null ? found : onceConnected(found);
    if (code.tag === "internal-error") this.#context.options.denied({ target: targetText(this.#target), detail: messageOf(error) });
    this.#head.body.fail(code);
    this.#head.body.start();
    this.#responseBody?.fail(code);
    this.#close();
    this.#settle({ tag: "err", val: code });
  }

  /** A server may end a connection that nobody uses just as a request is sent: one that may be sent twice is, if no answer had begun (RFC 9110, 9.2.2). */
  #broken(connection: Connection, request: ClientRequest, error: unknown): void {
    if (this.#request !== request) return;
    const isUnheard = this.#outcome === null && connection.isReused && connection.socket.bytesRead === this.#readBefore;
    if (!isUnheard || this.#stop.signal.aborted || !isDisconnect(error) || !isRepeatable(this.#head)) {
      this.#fail(error);
      return;
    }
    this.#withdrawTimer();
    this.#letGo();
    connection.end();
    void this.#attempt(false);
  }

  /** The response was read to its end. Its connection is kept where Node's client would keep it: where the request went out whole, too. */
  #finish(): void {
    const request = this.#request;
    if (this.#connection?.agent !== undefined && request?.writableFinished && request.shouldKeepAlive) this.#letGo();
    this.#close();
  }

  #letGo(): void {
    this.#withdrawSilence();
    this.#connection = null;
    this.#request = null;
  }

  #failInSilence(afterMs: number): void {
    const socket = this.#connection?.socket;
    const fail = (): void => this.#fail(new ExchangeFailure({ tag: "connection-read-timeout" }));
    socket?.setTimeout(afterMs).on("timeout", fail);
    this.#withdrawSilence = () => socket?.setTimeout(0).off("timeout", fail);
  }

  #settle(outcome: Outcome): void {
    this.#outcome ??= outcome;
    this.#settledBell.ring();
  }

  #close(): void {
    this.#withdrawTimer();
    this.#note.ended();
    this.#stop.abort(new ExchangeFailure({ tag: "connection-terminated" }));
    this.#request?.destroy();
    this.#connection?.end();
    this.#context.release(this);
  }

  #within(milliseconds: number | null, code: ErrorCode): void {
    this.#withdrawTimer();
    if (milliseconds !== null) this.#timer = setTimeout(() => this.#fail(new ExchangeFailure(code)), milliseconds);
  }

  #withdrawTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

export const targetText = ({ scheme, host, port }: Target): string => `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Whether a request may be sent again without knowing whether the first was heard; its body would have to be kept for that, so it has none. */
const isRepeatable = ({ method, body }: RequestHead): boolean =>
  ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].includes(method) && body.length === 0;

/** By these schemes it is a connection that is authenticated, and whatever else is sent on it. */
const authenticatesConnection = ({ headers }: RequestHead): boolean =>
  headers.get("authorization").some((value) => /^(ntlm|negotiate)\b/i.test(Buffer.from(value).toString("latin1")));

const isDisconnect = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");

/** The head's fields, with the host and the framing that we decide. Values are bytes, one character each. */
const sentHeaders = (target: Target, head: RequestHead): string[] => {
  const flat = ["host", hostHeader(target)];
  for (const [name, value] of Fields.entriesOf(head.headers)) {
    if (name !== "host" && name !== "content-length") flat.push(name, Buffer.from(value).toString("latin1"));
  }
  const length = head.body.length;
  if (length === null) flat.push("transfer-encoding", "chunked");
  else if (length > 0 || !["GET", "HEAD", "OPTIONS", "DELETE"].includes(head.method)) flat.push("content-length", String(length));
  return flat;
};

const hostHeader = ({ scheme, host, port }: Target): string => {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (scheme === "https" ? 443 : 80) ? name : `${name}:${port}`;
};
