import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { AmbitError, Invalid, Refused, Stalled, Transient, Waiting } from "../api/errors.ts";
import { announcementHeader, type HostRefusal } from "../api/host.ts";
import { ticketHeader } from "../tickets/ticket.ts";
import { millis, roundedUse } from "./figures.ts";
import type { ToolHost } from "./tool-host.ts";
import type { PoolReply } from "./worker-pool.ts";

/** Largest bodies taken, in bytes. Arguments are canonical JSON that the catalogue has bounded before. */
const maxArgumentBytes = 4 * 1024 * 1024;
const maxDeliveryBytes = 4 * 1024 * 1024;
const maxComponentBytes = 256 * 1024 * 1024;

type Handler = (host: ToolHost, request: IncomingMessage) => Promise<Answer> | Answer;

interface Answer {
  readonly status: number;
  /** JSON text. */
  readonly body: string;
}

/** All a host answers to; anything else is 404. */
const routes: Readonly<Record<string, Handler>> = {
  "POST /v1/call": async (host, request) => {
    const ticket = request.headers[ticketHeader];
    const reply = await host.call(typeof ticket === "string" ? ticket : undefined, () => readBody(request, maxArgumentBytes));
    return replyAnswer(reply);
  },
  "GET /healthz": (host) => ({ status: 200, body: JSON.stringify({ status: "ok", running: host.running }) }),
  "GET /readyz": (host) => ({
    status: host.missing.length === 0 ? 200 : 503,
    body: JSON.stringify({ ready: host.missing.length === 0, missing: host.missing }),
  }),
  "GET /v1/boot": (host) => ({ status: 200, body: JSON.stringify(host.boot) }),
  "PUT /v1/certificate": async (host, request) => {
    host.takeCertificate(await readJson(host, request));
    return done;
  },
  "PUT /v1/keys": async (host, request) => {
    host.takeKeys(await readJson(host, request));
    return done;
  },
  "PUT /v1/addresses": async (host, request) => {
    host.takeAddresses(await readJson(host, request));
    return done;
  },
  "PUT /v1/hop": async (host, request) => {
    host.takeHop(await readJson(host, request));
    return done;
  },
  "POST /v1/canary": async (host, request) => ({ status: 200, body: JSON.stringify(await host.tryCanary(await readJson(host, request))) }),
  "POST /v1/listing": async (host, request) => ({ status: 200, body: await host.listing(await readJson(host, request)) }),
  "PUT /v1/component": async (host, request) => {
    await host.takeComponent(await readDelivery(host, request, maxComponentBytes));
    return done;
  },
};

const done: Answer = { status: 200, body: "{}" };

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

export type ServeHttp = (options: ServerOptions, listener: RequestListener) => Server;

/** The HTTP API of a host, on plain `node:http` or on `serve`'s server: the hop costs every call, and there is nothing to route. */
export const hostServer = (host: ToolHost, serve: ServeHttp = createServer): Server =>
  serve({ keepAliveTimeout: 60_000, requestTimeout: 60_000, headersTimeout: 10_000 }, (request, response) => {
    void answer(host, request, response);
  });

const answer = async (host: ToolHost, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const route = routes[`${request.method} ${request.url}`];
  try {
    send(response, route === undefined ? refusal(404, "NotFound", "no such endpoint") : await route(host, request));
  } catch (error) {
    send(response, errorAnswer(error));
  }
};

const send = (response: ServerResponse, { status, body }: Answer): void => {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
};

const replyAnswer = ({ reply, queueMs, runMs }: PoolReply): Answer => {
  if (reply.kind === "refused") return refusal(reply.code === "FunctionUnknown" ? 409 : 422, reply.code, reply.message);
  const use = "use" in reply && reply.use !== undefined ? `,"use":${JSON.stringify(roundedUse(reply.use))}` : "";
  const stats = `"stats":{"queueMs":${millis(queueMs)},"runMs":${millis(runMs)}${use}}}`;
  if (reply.kind === "answer") return { status: 200, body: `${reply.json},${stats}` };
  // Nothing else comes of a call.
  if (reply.kind !== "failed") return refusal(500, "Internal", "the host failed; its log says how");
  const { code, text, ran } = reply;
  const head = JSON.stringify({ outcome: "failed", code, text, ran }).slice(0, -1);
  return { status: 200, body: `${head},${stats}` };
};

const refusal = (status: number, code: string, message: string): Answer => {
  const body: HostRefusal = { refused: true, code, message };
  return { status, body: JSON.stringify(body) };
};

const errorAnswer = (error: unknown): Answer => {
  if (!(error instanceof AmbitError)) return refusal(500, "Internal", "the host failed; its log says how");
  return refusal(statusOf(error), error.code, error.message);
};

const statusOf = (error: AmbitError): number => {
  if (error instanceof Waiting || error instanceof Transient) return 503;
  if (error instanceof Stalled) return 500;
  if (error instanceof Invalid) return error.code === "BodyTooLarge" ? 413 : 422;
  if (error instanceof Refused) return error.code.startsWith("Ticket") || error.code === "SignatureWrong" ? 401 : 409;
  return 500;
};

const readDelivery = async (host: ToolHost, request: IncomingMessage, maxBytes: number): Promise<Buffer> => {
  const announcement = request.headers[announcementHeader];
  const readable = host.readable(request.url ?? "", typeof announcement === "string" ? announcement : undefined);
  return readBody(request, Math.min(maxBytes, readable));
};

const readJson = async (host: ToolHost, request: IncomingMessage): Promise<unknown> => {
  const body = await readDelivery(host, request, maxDeliveryBytes);
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new Invalid("DeliveryMalformed", "the body is not JSON", undefined, { cause: error });
  }
};

const readBody = (request: IncomingMessage, maxBytes: number): Promise<Buffer> =>
  new Promise((done, failed) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) {
        failed(new Invalid("BodyTooLarge", `the body is larger than the ${maxBytes} bytes allowed`));
        request.destroy();
      } else {
        chunks.push(chunk);
      }
    });
    request.on("end", () => done(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
    request.on("error", failed);
    request.on("close", () => failed(new Transient("ConnectionClosed", "the connection was closed before the body had come")));
  });
