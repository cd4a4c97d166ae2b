import type { ContentBlock } from "../../api/content.ts";
import { compactJson, type JsonObject, jsonObject } from "../../api/json.ts";
import type { Admission, CallAnswer, CallRequest } from "../admission.ts";
import type { Caller } from "../caller.ts";
import { shownLabel } from "../claimed-labels.ts";
import type { Offers } from "../offers.ts";
import { type ResultParts, RpcError, rpcCodes } from "./messages.ts";
import { metaOf } from "./revisions.ts";

/**
 * Keys of ours in `_meta`: of a request, what `labels` and `session` are in `POST /v1/calls`; of a result, what became of the call, the label of what the tool
 * answered, and seconds after which a call that came too soon may come again.
 */
export const callMetaKeys = {
  labels: "dev.ambit/labels",
  session: "dev.ambit/session",
  outcome: "dev.ambit/outcome",
  label: "dev.ambit/label",
  retryAfter: "dev.ambit/retry-after",
  reason: "dev.ambit/reason",
} as const;

const longestSession = 128;

/** One text for every tool that this caller is not offered, whether there is one or not. */
export const unknownToolText = "Unknown tool";

export interface ToolCalling {
  readonly admission: Admission;
  readonly caller: Caller;
  readonly offers: Offers;
  /** Whether the caller may know why a call was refused. */
  readonly explain: boolean;
  /** Of the protocol's session, where there is one. */
  readonly session: string | null;
  /** Hears that every gate let the call through. */
  readonly onAdmitted?: () => void;
}

/** Throws `RpcError` -32602 for what is no call at all. */
export const callRequestOf = (params: JsonObject, session: string | null): CallRequest => {
  const { name, arguments: given = noArguments } = params;
  if (typeof name !== "string") throw new RpcError(rpcCodes.invalidParams, "Invalid params: name is the name of a tool");
  const meta = metaOf(params);
  const ownSession = meta?.[callMetaKeys.session] ?? session;
  if (ownSession !== null && (typeof ownSession !== "string" || ownSession.length > longestSession)) {
    throw new RpcError(rpcCodes.invalidParams, `Invalid params: ${callMetaKeys.session} is a text of at most ${longestSession} characters`);
  }
  // By its bare name, as https://modelcontextprotocol.io/seps/414 has it.
  const { traceparent } = meta ?? {};
  const trace = typeof traceparent === "string" ? { traceparent } : {};
  return { name, arguments: given, labels: meta?.[callMetaKeys.labels], session: ownSession, format: "mcp", ...trace };
};

const noArguments: JsonObject = jsonObject([]);

/**
 * Has a call judged and run. A tool that is not offered is a JSON-RPC error (-32602); whatever else becomes of a call is its result, so that a model reads it.
 */
export const callTool = async (calling: ToolCalling, params: JsonObject): Promise<ResultParts> => {
  const request = callRequestOf(params, calling.session);
  const { admission, caller, offers, onAdmitted } = calling;
  const answer = await admission.call(caller, offers, { ...request, ...(onAdmitted && { onAdmitted }) });
  if (answer.outcome === "refused" && answer.reason?.gate === "match") throw new RpcError(rpcCodes.invalidParams, unknownToolText);
  return { members: membersOf(answer), meta: metaFor(answer, calling.explain) };
};

const membersOf = ({ outcome, text, content, structured }: CallAnswer): string => {
  const blocks: readonly ContentBlock[] = content ?? [{ type: "text", text }];
  const isError = outcome !== "ok";
  const value = isError || structured === undefined ? "" : `,"structuredContent":${compactJson(structured)}`;
  // Texts and flags alone: the platform's own writer does.
  return `"content":${JSON.stringify(blocks)}${value},"isError":${isError}`;
};

const metaFor = ({ outcome, label, retryAfterMs, reason }: CallAnswer, explain: boolean): JsonObject => ({
  [callMetaKeys.outcome]: outcome,
  ...(label && { [callMetaKeys.label]: shownLabel(label) }),
  ...(retryAfterMs !== undefined && { [callMetaKeys.retryAfter]: Math.max(1, Math.ceil(retryAfterMs / 1000)) }),
  ...(explain && reason ? { [callMetaKeys.reason]: { ...reason } } : {}),
});
