import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "../../api/json.ts";
import { notificationMessage } from "./messages.ts";
import { metaOf } from "./revisions.ts";

/** What names a request in its progress: the client's choice. */
export type ProgressToken = string | number | bigint;

/** A call that runs for long is told of this often, so that no client takes it for lost. */
const beatMs = 10_000;

/** How far a call is: taken, admitted by every gate, answered. What a tool itself has done it can't say. */
const total = 2;

/** The token under which a request wants to hear of its progress; undefined where it doesn't, or couldn't. */
export const progressTokenIn = (params: JsonObject, request: IncomingMessage): ProgressToken | undefined => {
  const token = metaOf(params)?.progressToken;
  const isToken = typeof token === "string" || typeof token === "number" || typeof token === "bigint";
  return isToken && /text\/event-stream/i.test(request.headers.accept ?? "") ? token : undefined;
};

/** The answer to one request as a stream: its progress, which only ever grows, then the answer itself. */
export class ProgressStream {
  readonly #response: ServerResponse;
  readonly #token: ProgressToken;
  #beats = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(response: ServerResponse, token: ProgressToken) {
    this.#response = response;
    this.#token = token;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-accel-buffering": "no",
    });
    response.on("close", () => clearInterval(this.#timer));
    this.#tell(0);
  }

  admitted(): void {
    this.#tell(1);
    this.#timer = setInterval(() => {
      this.#beats++;
      this.#tell(1 + this.#beats / (this.#beats + 1));
    }, beatMs);
  }

  /** Says that the call was answered, and the answer. */
  answered(message: string): void {
    this.#tell(total);
    this.failed(message);
  }

  /** Ends with a JSON-RPC error. */
  failed(message: string): void {
    clearInterval(this.#timer);
    this.#response.end(event(message));
  }

  #tell(progress: number): void {
    this.#response.write(event(notificationMessage("notifications/progress", { progressToken: this.#token, progress, total })));
  }
}

/** One message as a server-sent event. */
export const event = (message: string): string => `event: message\ndata: ${message}\n\n`;
