import type { MessagePort } from "node:worker_threads";
import { costOf, type FromServed, type ServedHead, type ToServed, windowBytes } from "../../serving/served-messages.ts";
import type { CallContext } from "../call-context.ts";
import { IoError, type OutputSink } from "../streams.ts";
import { Bell } from "./bell.ts";
import type { ErrorCode } from "./error-code.ts";
import { Exchange } from "./exchange.ts";
import { Fields } from "./fields.ts";
import type { IncomingBytes } from "./incoming-body.ts";
import type { OutgoingBytes } from "./outgoing-body.ts";

/** What is written of a response before it was handed over waits here; more would wait for ever. */
const keptBytes = 64 * 1024;

const gone: ErrorCode = { tag: "connection-terminated" };

/** One request that a component serves, in its worker: what comes and goes on the port is bounded by windows, so that neither side is ahead by more. */
export class ServedExchange implements Disposable {
  readonly head: ServedHead;
  readonly request: IncomingBytes;
  readonly #context: CallContext;
  readonly #port: MessagePort;
  readonly #responseBytes: number;
  readonly #arrived = new Bell();
  readonly #room = new Bell();
  readonly #chunks: Uint8Array[] = [];
  #trailers: Fields | undefined;
  #requestEnded = false;
  #isAbandoned = false;
  #isGone = false;
  #hasResponded = false;
  #hasFinished = false;
  #sent = 0;
  #outstanding = 0;

  constructor(context: CallContext, head: ServedHead, port: MessagePort, responseBytes: number) {
    this.#context = context;
    this.head = head;
    this.#port = port;
    this.#responseBytes = responseBytes;
    port.on("message", (message: ToServed) => this.#take(message));
    const exchange = this;
    this.request = {
      get hasEnded() {
        return exchange.#hasBeenRead();
      },
      get trailers() {
        return exchange.#trailers;
      },
      readiness: {
        kind: "event",
        isReady: () => this.#chunks.length > 0 || this.#requestEnded || this.#isGone,
        wait: this.#arrived.wait,
      },
      read: (max) => this.#read(max),
      abandon: () => this.#abandon(),
    };
  }

  /** Hands the head of a response over, once; its body is `body`. */
  respond(status: number, headers: Fields, body: ServedResponseBody): boolean {
    if (this.#hasResponded) return false;
    this.#hasResponded = true;
    const flat = Fields.entriesOf(headers).flatMap(([name, value]) => [name, Buffer.from(value).toString("latin1")]);
    this.#tell({ kind: "head", status, headers: flat });
    body.attach(this);
    return true;
  }

  /** The guest says that it can't answer, and why. */
  refuse(reason: ErrorCode): void {
    if (this.#hasResponded) return;
    this.#hasResponded = true;
    this.cut(reason.tag === "internal-error" ? reason.val : reason.tag);
  }

  /** How much of the response may be sent now. Throws `IoError` once nobody reads it. */
  room(): number {
    if (this.#isGone || this.#hasFinished) throw new IoError("the client has gone", { kind: "http", code: gone });
    return this.#outstanding < windowBytes ? keptBytes : 0;
  }

  readonly whenRoom = (wake: () => void): (() => void) => this.#room.wait(wake);

  send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#sent + bytes.length > this.#responseBytes) {
      this.cut(`the response has more than ${this.#responseBytes} bytes`);
      throw new IoError("the response is larger than it may be", {
        kind: "http",
        code: { tag: "HTTP-response-body-size", val: undefined },
      });
    }
    this.#sent += bytes.length;
    this.#outstanding += costOf(bytes);
    // The guest's memory is not ours to give away: what it lifted is copied by posting it.
    this.#tell({ kind: "bytes", bytes });
  }

  finish(trailers: Fields | undefined): void {
    if (this.#hasFinished) return;
    this.#tell({
      kind: "end",
      trailers: trailers ? Fields.entriesOf(trailers).flatMap(([name, value]) => [name, Buffer.from(value).toString("latin1")]) : [],
    });
    this.#hasFinished = true;
  }

  cut(why: string): void {
    if (this.#hasFinished) return;
    this.#tell({ kind: "cut", why });
    this.#hasFinished = true;
    this.#room.ring();
  }

  /** Ends what the guest left open: a response that was not finished never will be. */
  [Symbol.dispose](): void {
    this.cut(this.#hasResponded ? "the component did not finish its response" : "the component gave no response");
    this.#port.close();
    this.#context.release(this);
  }

  #hasBeenRead(): boolean {
    return this.#requestEnded && this.#chunks.length === 0;
  }

  #take(message: ToServed): void {
    switch (message.kind) {
      case "bytes":
        if (this.#isAbandoned) this.#tell({ kind: "taken", count: costOf(message.bytes) });
        else this.#chunks.push(message.bytes);
        this.#arrived.ring();
        return;
      case "end":
        this.#requestEnded = true;
        if (message.trailers.length > 0) this.#trailers = Fields.received(message.trailers);
        this.#arrived.ring();
        return;
      case "taken":
        this.#outstanding -= message.count;
        this.#room.ring();
        return;
      case "gone":
        this.#isGone = true;
        this.#arrived.ring();
        this.#room.ring();
        // Nobody waits for what the guest asked others for.
        this.#context.endOpen(Exchange);
    }
  }

  #read(max: number): Uint8Array | null {
    const [first] = this.#chunks;
    if (first === undefined) {
      if (this.#requestEnded) return null;
      if (this.#isGone) throw new IoError("the request broke off", { kind: "http", code: gone });
      return new Uint8Array();
    }
    const bytes = first.subarray(0, max);
    const isLast = bytes.length === first.length;
    if (isLast) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(bytes.length);
    if (bytes.length > 0) this.#tell({ kind: "taken", count: isLast ? costOf(bytes) : bytes.length });
    return bytes;
  }

  #abandon(): void {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    const left = this.#chunks.splice(0).reduce((sum, chunk) => sum + costOf(chunk), 0);
    if (left > 0) this.#tell({ kind: "taken", count: left });
  }

  #tell(message: FromServed): void {
    if (!this.#hasFinished || message.kind === "taken") this.#port.postMessage(message);
  }
}

type Ending = { readonly trailers: Fields | undefined } | { readonly abort: ErrorCode };

/** The body of a response: kept until the response is handed over, sent from then on. */
export class ServedResponseBody implements OutgoingBytes {
  readonly #handed = new Bell();
  #exchange: ServedExchange | null = null;
  #kept: Uint8Array[] = [];
  #keptLength = 0;
  #ending: Ending | null = null;

  /** Whether the guest took it: a response whose body nobody took has none. */
  isTaken = false;

  attach(exchange: ServedExchange): void {
    this.#exchange = exchange;
    for (const bytes of this.#kept.splice(0)) exchange.send(bytes);
    if (!this.isTaken) exchange.finish(undefined);
    if (this.#ending) this.#end(exchange, this.#ending);
    this.#handed.ring();
  }

  readonly sink = (): OutputSink => ({
    room: () => this.#roomLeft(),
    write: (bytes) => this.#write(bytes),
    flush: () => undefined,
    readiness: {
      kind: "event",
      isReady: () => this.#isReady(),
      wait: (wake) => (this.#exchange ? this.#exchange.whenRoom(wake) : this.#handed.wait(wake)),
    },
    close: () => undefined,
  });

  readonly finish = (trailers: Fields | undefined): ErrorCode | null => {
    if (this.#ending === null) this.#settle({ trailers });
    return null;
  };

  readonly abort = (reason: ErrorCode): void => {
    if (this.#ending === null) this.#settle({ abort: reason });
  };

  #settle(ending: Ending): void {
    this.#ending = ending;
    if (this.#exchange) this.#end(this.#exchange, ending);
  }

  #end(exchange: ServedExchange, ending: Ending): void {
    if ("abort" in ending) exchange.cut("the component gave its response up");
    else exchange.finish(ending.trailers);
  }

  #roomLeft(): number | null {
    if (this.#ending !== null) return null;
    if (this.#exchange) return this.#exchange.room();
    return this.#keptLength < keptBytes ? keptBytes - this.#keptLength : 0;
  }

  #isReady(): boolean {
    try {
      return this.#roomLeft() !== 0;
    } catch (error) {
      if (error instanceof IoError) return true;
      throw error;
    }
  }

  #write(bytes: Uint8Array): void {
    if (this.#exchange) {
      this.#exchange.send(bytes);
      return;
    }
    this.#kept.push(bytes.slice());
    this.#keptLength += bytes.length;
  }
}
