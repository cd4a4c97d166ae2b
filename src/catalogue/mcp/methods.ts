import { compactJson, type JsonObject } from "../../api/json.ts";
import { ambitVersion } from "../../api/version.ts";
import type { Admission } from "../admission.ts";
import type { Caller } from "../caller.ts";
import type { Offers } from "../offers.ts";
import { type ResultParts, RpcError, type RpcRequest, resultMessage, rpcCodes } from "./messages.ts";
import { isSessionRevision, metaKeys, sessionRevisions, statelessRevision } from "./revisions.ts";
import { callTool } from "./tool-call.ts";
import type { Listing, ToolLists } from "./tool-list.ts";

export interface MethodContext {
  readonly caller: Caller;
  readonly offers: Offers;
  readonly lists: ToolLists;
  readonly listing: Listing;
  readonly admission: Admission;
  readonly explain: boolean;
  /** The session that the request is of, by the name that a journal may show. */
  readonly session: string | null;
  /** Hears that every gate let the call through. */
  readonly onAdmitted?: () => void;
}

type Method = (context: MethodContext, params: JsonObject) => Promise<ResultParts> | ResultParts;

/** How long a list may be taken for current; a change is told before that to whoever listens. */
const listTtlMs = 30_000;
/** What the server is and can do changes only with the server. */
const discoveryTtlMs = 60 * 60 * 1000;

/** No `instructions`: nothing reaches a model that no person has reviewed. */
const serverInfo: JsonObject = { name: "ambit", title: "Ambit", version: ambitVersion };
const capabilities: JsonObject = { tools: { listChanged: true } };

const membersIn = (object: JsonObject): string => compactJson(object).slice(1, -1);

const discovery: ResultParts = {
  members: membersIn({ supportedVersions: [statelessRevision], capabilities, ttlMs: discoveryTtlMs, cacheScope: "public" }),
};

const listed = ({ lists, offers, listing }: MethodContext, { cursor }: JsonObject): string => {
  if (cursor !== undefined && typeof cursor !== "string") throw new RpcError(rpcCodes.invalidParams, "Invalid params: cursor is a string");
  return lists.page(offers, cursor, listing).members;
};

const statelessMethods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["server/discover", () => discovery],
  ["tools/list", (context, params) => ({ members: `${listed(context, params)},"ttlMs":${listTtlMs},"cacheScope":"private"` })],
  ["tools/call", callTool],
]);

const sessionMethods: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    "initialize",
    (_context, { protocolVersion }) => ({
      members: membersIn({
        protocolVersion: isSessionRevision(protocolVersion) ? protocolVersion : sessionRevisions[0],
        capabilities,
        serverInfo,
      }),
    }),
  ],
  ["ping", () => ({ members: "" })],
  ["tools/list", (context, params) => ({ members: listed(context, params) })],
  ["tools/call", callTool],
]);

const selfIntroduction: JsonObject = { [metaKeys.serverInfo]: serverInfo };

/** The answer to a request of 2026-07-28. Throws `RpcError`, -32601 with status 404 for a method that it doesn't have. */
export const answerStateless = async (context: MethodContext, { id, method, params }: RpcRequest): Promise<string> => {
  const answer = statelessMethods.get(method);
  if (answer === undefined) throw unknownMethod(404);
  const { members, meta = {} } = await answer(context, params);
  return resultMessage(id, `{"resultType":"complete",${members},"_meta":${compactJson({ ...selfIntroduction, ...meta })}}`);
};

/** The answer to a request of an earlier revision. Throws `RpcError`, -32601 for a method that it doesn't have. */
export const answerInSession = async (context: MethodContext, { id, method, params }: RpcRequest): Promise<string> => {
  const answer = sessionMethods.get(method);
  if (answer === undefined) throw unknownMethod(200);
  const { members, meta } = await answer(context, params);
  if (meta === undefined) return resultMessage(id, `{${members}}`);
  return resultMessage(id, `{${members},"_meta":${compactJson(meta)}}`);
};

const unknownMethod = (status: number): RpcError => new RpcError(rpcCodes.methodNotFound, "Method not found", { status });
