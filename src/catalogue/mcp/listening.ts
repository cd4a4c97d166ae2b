import { compactJson, isJsonObject, type JsonObject, type JsonValue } from "../../api/json.ts";
import { callerKey } from "../caller.ts";
import { HttpError } from "../http.ts";
import type { WatchWords } from "../watch.ts";
import type { McpExchange, McpParts } from "./endpoint.ts";
import { notificationMessage, RpcError, type RpcRequest, resultMessage, rpcCodes } from "./messages.ts";
import { event } from "./progress.ts";
import { metaKeys } from "./revisions.ts";
import type { Session } from "./sessions.ts";

const toolsChanged = "notifications/tools/list_changed";

/**
 * `subscriptions/listen` of 2026-07-28: the answer is a stream that stays open and tells when the caller's list of tools is another. Only that can be
 * listened for here; who asks for other things alone hears so, and the stream ends.
 */
export const listenStream = (parts: McpParts, exchange: McpExchange, { id, params }: RpcRequest): void => {
  const { notifications } = params;
  if (!isJsonObject(notifications) || !isFlag(notifications.toolsListChanged)) {
    throw new RpcError(rpcCodes.invalidParams, "Invalid params: notifications says what to listen for");
  }
  const honoured: JsonObject = notifications.toolsListChanged === true ? { toolsListChanged: true } : {};
  const _meta: JsonObject = { [metaKeys.subscriptionId]: id };
  const acknowledged = event(notificationMessage("notifications/subscriptions/acknowledged", { _meta, notifications: honoured }));
  const closing = event(resultMessage(id, compactJson({ resultType: "complete", _meta })));
  if (honoured.toolsListChanged !== true) {
    exchange.response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    exchange.response.end(acknowledged + closing);
    return;
  }
  const changed = event(notificationMessage(toolsChanged, { _meta }));
  watch(parts, exchange, { opening: () => acknowledged, changed: () => changed, closing });
};

/** The GET of an earlier revision. A session has one such stream, so that no message comes twice: a newer one ends the older. */
export const sessionStream = (parts: McpParts, exchange: McpExchange, { name }: Session): void => {
  const changed = event(notificationMessage(toolsChanged));
  watch(parts, exchange, { opening: () => ": open\n\n", changed: () => changed, closing: "" }, name);
};

const watch = ({ watches, offers, lists, report }: McpParts, exchange: McpExchange, words: WatchWords, replaces?: string): void => {
  const { caller, response, stillValid } = exchange;
  const etag = (): string | null => {
    try {
      return lists.print(offers.offersFor(caller));
    } catch (fault) {
      report(fault);
      return null;
    }
  };
  try {
    watches.add(response, { caller: callerKey(caller), etag, stillValid, words, ...(replaces === undefined ? {} : { replaces }) });
  } catch (thrown) {
    if (!(thrown instanceof HttpError)) throw thrown;
    throw new RpcError(rpcCodes.internalError, thrown.message, { status: thrown.status });
  }
};

const isFlag = (value: JsonValue | undefined): boolean => value === undefined || typeof value === "boolean";
