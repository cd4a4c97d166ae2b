import type { IncomingMessage, ServerResponse } from "node:http";
import { Invalid } from "../../api/errors.ts";
import { defaultJsonLimits, type JsonValue, parseJson } from "../../api/json.ts";
import type { Admission } from "../admission.ts";
import type { BodyBudget } from "../body-budget.ts";
import type { Caller } from "../caller.ts";
import { HttpError, readJsonText, respond } from "../http.ts";
import type { OfferBook } from "../offers.ts";
import type { Watches } from "../watch.ts";
import { listenStream, sessionStream } from "./listening.ts";
import { errorMessage, idIn, messageIn, RpcError, type RpcId, type RpcMessage, type RpcRequest, rpcCodes } from "./messages.ts";
import { answerInSession, answerStateless, type MethodContext } from "./methods.ts";
import { ProgressStream, progressTokenIn } from "./progress.ts";
import { checkStateless, isOfSessions, isSessionRevision, sessionRevisionIn, sessionRevisions } from "./revisions.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { Listing, ToolLists } from "./tool-list.ts";

export interface McpParts {
  readonly offers: OfferBook;
  readonly lists: ToolLists;
  readonly sessions: Sessions;
  readonly admission: Admission;
  readonly watches: Watches;
  readonly bodies: BodyBudget;
  /** Bytes of a request's body. */
  readonly bodyBytes: number;
  readonly explainsTo: (caller: Caller) => boolean;
  /** Hears of faults that are ours. */
  readonly report: (fault: unknown) => void;
}

/** One HTTP request to the endpoint, of a caller who was authenticated; `stillValid` tells later whether its token still holds. */
export interface McpExchange {
  readonly caller: Caller;
  /** Which tools are listed; all that the caller is offered may be called. */
  readonly listing: Listing;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly stillValid: () => Promise<boolean>;
}

const sessionHeader = "mcp-session-id";

/** Messages of one batch, which 2025-03-26 has and no other revision. */
const mostBatched = 32;

/** A body holds the arguments this many levels down: message, params; and in a batch. */
const levelsAbove = 3;

/** MCP's Streamable HTTP: docs/mcp.md says what of it there is. */
export const answerMcp = async (parts: McpParts, exchange: McpExchange): Promise<void> => {
  try {
    await answer(parts, exchange);
  } catch (thrown) {
    if (!(thrown instanceof RpcError) || exchange.response.headersSent) throw thrown;
    respond(exchange.response, thrown.status, errorMessage(null, thrown));
  }
};

const answer = async (parts: McpParts, exchange: McpExchange): Promise<void> => {
  switch (exchange.request.method) {
    case "POST":
      return post(parts, exchange);
    case "GET":
      return listenInSession(parts, exchange);
    case "DELETE":
      return endSession(parts, exchange);
    default:
      throw new HttpError(405, "MethodNotAllowed", "use POST here", { allow: "POST, GET, DELETE" });
  }
};

const post = async (parts: McpParts, exchange: McpExchange): Promise<void> => {
  const { request, response } = exchange;
  const lease = parts.bodies.lease();
  let id: RpcId | null = null;
  try {
    const body = parsed(await readJsonText(request, parts.bodyBytes, lease.take));
    if (Array.isArray(body)) return await answerBatch(parts, exchange, body);
    id = idIn(body);
    const message = messageIn(body);
    if (isOfSessions(request.headers, message)) await answerOfSession(parts, exchange, message);
    else await answerAlone(parts, exchange, message);
  } catch (thrown) {
    if (!(thrown instanceof RpcError) || response.headersSent) throw thrown;
    respond(response, thrown.status, errorMessage(id, thrown));
  } finally {
    lease.end();
  }
};

const parsed = (text: string): JsonValue => {
  try {
    return parseJson(text, { maxLength: text.length, maxDepth: defaultJsonLimits.maxDepth + levelsAbove });
  } catch (thrown) {
    if (thrown instanceof Invalid) throw new RpcError(rpcCodes.parseError, `Parse error: ${thrown.message}`, { status: 400 });
    throw thrown;
  }
};

/** A message of 2026-07-28. */
const answerAlone = async (parts: McpParts, exchange: McpExchange, message: RpcMessage): Promise<void> => {
  const { request, response } = exchange;
  if (message.kind !== "request") {
    if (message.kind === "notification") return accepted(response);
    throw new RpcError(rpcCodes.invalidRequest, "Invalid request: nothing was asked of you", { status: 400 });
  }
  checkStateless(request.headers, message);
  if (message.method === "subscriptions/listen") return listenStream(parts, exchange, message);
  await sendAnswer(exchange, message, answerStateless, contextOf(parts, exchange, null));
};

/** A message of an earlier revision. */
const answerOfSession = async (parts: McpParts, exchange: McpExchange, message: RpcMessage): Promise<void> => {
  const { caller, response } = exchange;
  if (message.kind !== "request") {
    sessionOf(parts, exchange);
    return accepted(response);
  }
  if (message.method !== "initialize") {
    const session = sessionOf(parts, exchange);
    return sendAnswer(exchange, message, answerInSession, contextOf(parts, exchange, session));
  }
  const asked = message.params.protocolVersion;
  const id = parts.sessions.open(caller, isSessionRevision(asked) ? asked : sessionRevisions[0]);
  respond(response, 200, await answerInSession(contextOf(parts, exchange, null), message), { [sessionHeader]: id });
};

type Answering = (context: MethodContext, message: RpcRequest) => Promise<string>;

/** As one JSON object, or as a stream with the call's progress where that was asked for. */
const sendAnswer = async (
  { request, response }: McpExchange,
  message: RpcRequest,
  answering: Answering,
  context: MethodContext,
): Promise<void> => {
  const token = message.method === "tools/call" ? progressTokenIn(message.params, request) : undefined;
  if (token === undefined) return respond(response, 200, await answering(context, message));
  const stream = new ProgressStream(response, token);
  try {
    stream.answered(await answering({ ...context, onAdmitted: () => stream.admitted() }, message));
  } catch (thrown) {
    if (!(thrown instanceof RpcError)) throw thrown;
    stream.failed(errorMessage(message.id, thrown));
  }
};

const answerBatch = async (parts: McpParts, exchange: McpExchange, bodies: readonly JsonValue[]): Promise<void> => {
  const { request, response } = exchange;
  const session = sessionOf(parts, exchange);
  if ((session?.revision ?? sessionRevisionIn(request.headers)) !== "2025-03-26" || bodies.length === 0 || bodies.length > mostBatched) {
    throw new RpcError(rpcCodes.invalidRequest, `Invalid request: one message a request, or up to ${mostBatched} in 2025-03-26`, {
      status: 400,
    });
  }
  const context = contextOf(parts, exchange, session);
  const answers: string[] = [];
  for (const body of bodies) {
    const answer = await answerBatched(context, body);
    if (answer !== null) answers.push(answer);
  }
  if (answers.length === 0) accepted(response);
  else respond(response, 200, `[${answers.join(",")}]`);
};

const answerBatched = async (context: MethodContext, body: JsonValue): Promise<string | null> => {
  try {
    const message = messageIn(body);
    if (message.kind !== "request") return null;
    if (message.method === "initialize") throw new RpcError(rpcCodes.invalidRequest, "Invalid request: initialize stands alone");
    return await answerInSession(context, message);
  } catch (thrown) {
    if (!(thrown instanceof RpcError)) throw thrown;
    return errorMessage(idIn(body), thrown);
  }
};

/** What an earlier revision's GET is for: to hear that the list of tools has changed. */
const listenInSession = (parts: McpParts, exchange: McpExchange): void => {
  const { request } = exchange;
  const session = sessionOf(parts, exchange);
  const takesEvents = /(^|[ ,])(text\/event-stream|text\/\*|\*\/\*)([ ,;]|$)/i.test(request.headers.accept ?? "");
  if (session === null || !takesEvents) throw noSessionHere();
  sessionStream(parts, exchange, session);
};

const endSession = (parts: McpParts, exchange: McpExchange): void => {
  const { request, response } = exchange;
  if (sessionOf(parts, exchange) === null) throw noSessionHere();
  parts.sessions.end(String(request.headers[sessionHeader]));
  response.writeHead(204).end();
};

const noSessionHere = (): HttpError =>
  new HttpError(405, "MethodNotAllowed", "use POST here; GET and DELETE are for sessions of earlier revisions", { allow: "POST" });

/** The session that the request names; null where it names none, which is fine: a session holds nothing that an answer needs. */
const sessionOf = ({ sessions }: McpParts, { caller, request }: McpExchange): Session | null => {
  const id = request.headers[sessionHeader];
  if (id === undefined) return null;
  const session = sessions.find(caller, String(id));
  if (session === null) throw new RpcError(rpcCodes.invalidRequest, "Session not found: initialize again", { status: 404 });
  return session;
};

const contextOf = (parts: McpParts, { caller, listing }: McpExchange, session: Session | null): MethodContext => ({
  caller,
  offers: parts.offers.offersFor(caller),
  lists: parts.lists,
  listing,
  admission: parts.admission,
  explain: parts.explainsTo(caller),
  session: session?.name ?? null,
});

const accepted = (response: ServerResponse): void => {
  response.writeHead(202).end();
};
