import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { Invalid, Transient } from "../api/errors.ts";
import { isTurnFormat } from "../declaration/formats.ts";
import type { Admission } from "./admission.ts";
import type { BodyBudget } from "./body-budget.ts";
import { type Authenticate, type Caller, callerKey } from "./caller.ts";
import { answerCall, answerTurn, callRequestIn } from "./calls.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { countOf, type DeclarationLists, declarationParameters, formatOf, searchOf } from "./declarations.ts";
import { bearerToken, guardRequest, HttpError, type HttpGuard, queryOf, readJsonText, respond, respondError } from "./http.ts";
import { answerMcp, type McpParts } from "./mcp/endpoint.ts";
import type { OfferBook } from "./offers.ts";
import { openApiText } from "./openapi.ts";
import { searchLimits, type ToolSearch } from "./search.ts";
import { UnreadAnswers, type UnreadLimits } from "./unread-answers.ts";
import type { Watches } from "./watch.ts";

export interface ServerLimits extends ConnectionLimits, UnreadLimits {
  /** Bytes of a request's body: one call, or a turn of them. */
  readonly bodyBytes: number;
  /** Bytes of all bodies that are held at one time. */
  readonly heldBodyBytes: number;
  /** Time for a request's headers, and for all of it. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** A connection on which nothing moves for so long is closed. Above the longest deadline of a tool. */
  readonly idleMs: number;
  readonly connections: number;
}

export const defaultServerLimits: ServerLimits = {
  bodyBytes: 4 * 1024 * 1024,
  heldBodyBytes: 64 * 1024 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 15 * 60_000,
  connections: 4096,
  connectionsPerAddress: 1024,
  unreadBytes: 64 * 1024 * 1024,
  unreadMs: 60_000,
};

export interface ServerParts {
  readonly authenticate: Authenticate;
  readonly offers: OfferBook;
  readonly lists: DeclarationLists;
  readonly search: ToolSearch;
  readonly watches: Watches;
  readonly admission: Admission;
  readonly mcp: McpParts;
  readonly bodies: BodyBudget;
  readonly guard: HttpGuard;
  /** Whether the state has been filled; before, nobody is told that there are no tools. */
  readonly isReady: () => boolean;
  /** Callers who are told why a call was refused. */
  readonly explainsTo: (caller: Caller) => boolean;
  /** Hears of faults that are ours. */
  readonly report: (fault: unknown) => void;
  readonly limits: ServerLimits;
  /** What the server shows of itself; without it, it speaks plain HTTP. */
  readonly tls?: SecureContextOptions;
}

type Route = (
  parts: ServerParts,
  caller: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  search: string,
) => Promise<void> | void;

const listDeclarations: Route = async (parts, caller, request, response, search) => {
  const { offers, lists, watches, report } = parts;
  const { watch, ...query } = queryOf(search, declarationParameters);
  if (watch !== undefined) {
    lists.list(offers.offersFor(caller), query);
    watches.add(response, {
      caller: callerKey(caller),
      etag: () => {
        try {
          return lists.list(offers.offersFor(caller), query).etag;
        } catch (fault) {
          report(fault);
          return null;
        }
      },
      stillValid: stillValid(parts, caller, request),
    });
    return;
  }
  const list = lists.list(offers.offersFor(caller), query);
  const compressed = list.body.length > smallestCompressed && acceptsGzip(request);
  const etag = compressed ? list.etag.replace(/"$/, '-gzip"') : list.etag;
  const headers: Record<string, string> = { etag, vary: "accept-encoding, authorization" };
  if (list.leftOut !== "") headers["ambit-left-out"] = list.leftOut;
  if (list.nextCursor !== null) headers["ambit-next-cursor"] = list.nextCursor;
  if (matchesEtag(request, list.etag)) {
    response.writeHead(304, { "cache-control": "private, no-cache", ...headers }).end();
  } else if (compressed) {
    respond(response, 200, await list.compressed(), { ...headers, "content-encoding": "gzip" });
  } else {
    respond(response, 200, list.body, headers);
  }
};

/** Whether the token of a request that goes on for long still is this caller's. */
const stillValid =
  ({ authenticate }: ServerParts, caller: Caller, request: IncomingMessage) =>
  async (): Promise<boolean> => {
    const now = await authenticate(bearerToken(request));
    return now !== null && callerKey(now) === callerKey(caller);
  };

/** Below this, compressing saves no packet. */
const smallestCompressed = 1024;

const acceptsGzip = (request: IncomingMessage): boolean => {
  const accepted = String(request.headers["accept-encoding"] ?? "").toLowerCase();
  return /(^|[ ,])(gzip|\*)([ ,;]|$)/.test(accepted) && !/gzip *; *q=0(\.0*)?([ ,]|$)/.test(accepted);
};

const matchesEtag = (request: IncomingMessage, etag: string): boolean => {
  const known = request.headers["if-none-match"];
  if (known === undefined) return false;
  if (known.trim() === "*") return true;
  return known.split(",").some(
    (one) =>
      one
        .trim()
        .replace(/^W\//, "")
        .replace(/-gzip"$/, '"') === etag,
  );
};

const oneDeclaration: Route = ({ offers, lists }, caller, request, response, search) => {
  const format = formatOf(queryOf(search, ["format"]).format);
  const offer = offers.offersFor(caller).byName.get(lastSegment(request));
  if (!offer) throw new HttpError(404, "NotOffered", "no tool of this name is offered to you");
  const declaration = lists.one(offer, format);
  if (declaration === null)
    throw new HttpError(404, "LeftOut", `the tool is left out of the format ${format}, whose provider would reject it`);
  respond(response, 200, declaration);
};

const lastSegment = (request: IncomingMessage): string => {
  const [path = ""] = (request.url ?? "").split("?", 1);
  try {
    return decodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
  } catch (cause) {
    if (cause instanceof URIError) throw new HttpError(400, "PathInvalid", "the path is not percent-encoded UTF-8");
    throw cause;
  }
};

const searchTools: Route = ({ offers, lists, search: tools }, caller, _request, response, search) => {
  const { q, limit, format: formatText } = queryOf(search, ["q", "limit", "format"]);
  const format = formatOf(formatText);
  if (q === undefined || q.trim() === "") throw new HttpError(400, "QueryInvalid", "say what to search for: ?q=…");
  if (q.length > searchLimits.queryLength) {
    throw new HttpError(400, "QueryInvalid", `the question is longer than the ${searchLimits.queryLength} characters allowed`);
  }
  const most = limit === undefined ? searchLimits.defaultHits : countOf("limit", limit, searchLimits.hits);
  const hits = tools.search(offers.offersFor(caller), q, most).flatMap(({ offer, score }) => {
    const declaration = lists.one(offer, format);
    return declaration === null ? [] : [`{"score":${score},"declaration":${declaration}}`];
  });
  respond(response, 200, `{"hits":[${hits.join(",")}]}`);
};

const callTools: Route = async ({ offers, admission, bodies, limits, explainsTo, report }, caller, request, response, search) => {
  const { format: formatText } = queryOf(search, ["format"]);
  const format = formatOf(formatText);
  if (format === "mcp") throw new HttpError(400, "QueryInvalid", "MCP's calls go to /mcp, as its protocol says");
  const lease = bodies.lease();
  try {
    const text = await readJsonText(request, limits.bodyBytes, lease.take);
    const call = { admission, caller, offers: offers.offersFor(caller), explain: explainsTo(caller), report };
    const { body, retryAfterMs } = isTurnFormat(format)
      ? await answerTurn(call, format, text)
      : await answerCall(call, callRequestIn(text));
    respond(response, 200, body, retryAfterMs === null ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) });
  } finally {
    lease.end();
  }
};

const openApi: Route = (_parts, _caller, _request, response) => respond(response, 200, openApiText);

const routes: readonly { readonly path: RegExp; readonly method: "GET" | "POST"; readonly route: Route }[] = [
  { path: /^\/v1\/declarations$/, method: "GET", route: listDeclarations },
  { path: /^\/v1\/declarations\/[^/]+$/, method: "GET", route: oneDeclaration },
  { path: /^\/v1\/search$/, method: "GET", route: searchTools },
  { path: /^\/v1\/calls$/, method: "POST", route: callTools },
  { path: /^\/v1\/openapi\.json$/, method: "GET", route: openApi },
];

/** The HTTP server of a catalogue, not yet listening. */
export const catalogueServer = (parts: ServerParts): Server | TlsServer => {
  const { limits, tls } = parts;
  const options: ServerOptions = {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: 60_000,
    maxHeaderSize: 32 * 1024,
  };
  const connections = new Connections(limits);
  const unread = new UnreadAnswers(limits);
  const listener: RequestListener = (request, response) => {
    const answered = handle(parts, connections, request, response).catch((thrown: unknown) => {
      if (!isCallersFault(thrown)) parts.report(thrown);
      if (response.headersSent) response.destroy();
      else respondError(response, thrown);
    });
    answered.finally(() => {
      unread.written(request, response);
      // What a closing server answers leaves an idle connection, which would keep it from having closed.
      if (!server.listening) response.once("close", () => server.closeIdleConnections());
    });
  };
  const server = tls === undefined ? createServer(options, listener) : createTlsServer({ ...options, ...secure(tls) }, listener);
  server.on("connection", (socket: Socket) => connections.opened(socket));
  server.setTimeout(limits.idleMs);
  return server;
};

/** Old versions of TLS are refused, whatever Node's defaults are. */
const secure = (tls: SecureContextOptions): SecureContextOptions & { readonly handshakeTimeout: number } => ({
  ...tls,
  minVersion: "TLSv1.2",
  handshakeTimeout: 10_000,
});

const isCallersFault = (thrown: unknown): boolean => thrown instanceof HttpError || thrown instanceof Invalid;

const handle = async (parts: ServerParts, connections: Connections, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const url = request.url ?? "";
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  if (path === "/healthz") return respond(response, 200, '{"status":"ok"}');
  if (path === "/readyz") return readiness(parts, response);
  guardRequest(request, parts.guard);
  const caller = await callerOf(parts, request);
  connections.callerIsKnown(request.socket);
  if (path === "/mcp") {
    if (!parts.isReady()) throw notReady();
    const { search } = queryOf(mark < 0 ? "" : url.slice(mark + 1), ["search"]);
    const listing = search === undefined ? "all" : searchOf(search);
    return answerMcp(parts.mcp, { caller, listing, request, response, stillValid: stillValid(parts, caller, request) });
  }
  const found = routes.filter((candidate) => candidate.path.test(path));
  const method = request.method === "HEAD" ? "GET" : request.method;
  const match = found.find((candidate) => candidate.method === method);
  if (!found[0]) throw new HttpError(404, "PathUnknown", "there is nothing at this path; /v1/openapi.json describes what there is");
  if (!match) throw new HttpError(405, "MethodNotAllowed", `use ${found[0].method} here`, { allow: found[0].method });
  if (!parts.isReady()) throw notReady();
  await match.route(parts, caller, request, response, mark < 0 ? "" : url.slice(mark + 1));
};

const notReady = (): HttpError => new HttpError(503, "NotReady", "the catalogue does not know its tools yet", { "retry-after": "1" });

const readiness = ({ isReady }: ServerParts, response: ServerResponse): void =>
  isReady() ? respond(response, 200, '{"status":"ready"}') : respond(response, 503, '{"status":"starting"}');

const callerOf = async ({ authenticate, report }: ServerParts, request: IncomingMessage): Promise<Caller> => {
  let caller: Caller | null;
  try {
    caller = await authenticate(bearerToken(request));
  } catch (thrown) {
    if (!(thrown instanceof Transient)) throw thrown;
    report(thrown);
    throw new HttpError(503, "AuthenticationUnavailable", "who you are cannot be checked at the moment", { "retry-after": "1" });
  }
  if (caller === null) {
    throw new HttpError(401, "Unauthenticated", "send a token that is valid here: Authorization: Bearer …", {
      "www-authenticate": 'Bearer realm="ambit"',
    });
  }
  return caller;
};
