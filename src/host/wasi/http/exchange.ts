import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { messageOf } from "../../../api/errors.ts";
import { hopHeader } from "../../../api/host.ts";
import type { AllowedHost } from "../../../egress/allowed-host.ts";
import type { Target } from "../../../egress/target.ts";
import type { CallContext } from "../call-context.ts";
import type { RequestNote } from "../made-requests.ts";
import { Bell } from "./bell.ts";
import { connectToAny, connectToServer } from "./connect.ts";
import { type ErrorCode, ExchangeFailure, errorCodeOf, onceConnected } from "./error-code.ts";
import { Fields } from "./fields.ts";
import { IncomingResponse, ResponseBody } from "./incoming-response.ts";
import type { RequestHead } from "./outgoing-request.ts";

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

/** Loaded by the first who needs it: a tool without granted hosts does not pay for the client's memory. */
export const httpClient = (): typeof import("node:http") => process.getBuiltinModule("node:http");

/** One request and its response over one connection of its own. Everything that touches the network is here and in `connect.ts`. */
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
  #socket: Socket | null = null;
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
  async run(): Promise<void> {
    try {
      this.#within(this.#timeouts.connectMs, { tag: "connection-timeout" });
      const socket = await this.#connected();
      this.#withdrawTimer();
      this.#socket = socket;
      socket.on("error", (error) => this.#fail(error));
      if (!this.#head.body.isStarted) await new Promise<void>((resolve) => this.#head.body.started.wait(resolve));
      const failure = this.#head.body.failure;
      if (failure !== null) throw new ExchangeFailure(failure);
      this.#stop.signal.throwIfAborted();
      this.#send(socket);
    } catch (error) {
      this.#fail(error);
    }
  }

  [Symbol.dispose](): void {
    this.#fail(new ExchangeFailure({ tag: "connection-terminated" }, "the call gave the request up"));
  }

  async #connected(): Promise<Socket> {
    const { connectMs } = this.#timeouts;
    const { dial, hop } = this.#context.options;
    if (this.#target.host !== hop?.authority) return connectToAny(this.#target, await dial(this.#target), connectMs, this.#stop.signal);
    const reach = hop.reach();
    if (!reach || reach.servers.length === 0)
      throw new ExchangeFailure({ tag: "connection-refused" }, `no server of ${hop.authority} is ready`);
    this.#credential = reach.credential;
    return connectToServer(reach, connectMs, this.#stop.signal);
  }

  #send(socket: Socket): void {
    const { body } = this.#head;
    const request = httpClient().request({
      createConnection: () => socket,
      method: this.#head.method,
      path: this.#head.path,
      headers: [...sentHeaders(this.#target, this.#head), ...(this.#credential === null ? [] : [hopHeader, this.#credential])],
      setHost: false,
      maxHeaderSize: this.#context.options.budgets.headerBytes,
      insecureHTTPParser: false,
    });
    this.#request = request;
    request.on("error", (error) => this.#fail(error));
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
      this.#socket?.setTimeout(between, () => this.#fail(new ExchangeFailure({ tag: "connection-read-timeout" })));
    }
    const body = new ResponseBody(this.#context, message, this.#target.host, this.abandon);
    this.#responseBody = body;
    message.on("end", () => this.#close());
    this.#settle({
      tag: "ok",
      val: new IncomingResponse(this.#context, message.statusCode ?? 0, Fields.received(message.rawHeaders), body),
    });
  }

  #fail(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const found = errorCodeOf(error, this.#target.host);
    const code = this.#socket === null ? found : onceConnected(found);
    if (code.tag === "internal-error") this.#context.options.denied({ target: targetText(this.#target), detail: messageOf(error) });
    this.#head.body.fail(code);
    this.#head.body.start();
    this.#responseBody?.fail(code);
    this.#close();
    this.#settle({ tag: "err", val: code });
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
    this.#socket?.destroy();
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

/** The head's fields, with the host and the framing that we decide. Values are bytes, one character each. */
const sentHeaders = (target: Target, head: RequestHead): string[] => {
  const flat = ["host", hostHeader(target)];
  for (const [name, value] of Fields.entriesOf(head.headers)) {
    if (name !== "host" && name !== "content-length") flat.push(name, Buffer.from(value).toString("latin1"));
  }
  const length = head.body.length;
  if (length === null) flat.push("transfer-encoding", "chunked");
  else if (length > 0 || !["GET", "HEAD", "OPTIONS", "DELETE"].includes(head.method)) flat.push("content-length", String(length));
  return [...flat, "connection", "close"];
};

const hostHeader = ({ scheme, host, port }: Target): string => {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (scheme === "https" ? 443 : 80) ? name : `${name}:${port}`;
};
