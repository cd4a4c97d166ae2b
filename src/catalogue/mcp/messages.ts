import { AmbitError } from "../../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue } from "../../api/json.ts";

/** Codes of JSON-RPC 2.0, and below -32019 those that MCP 2026-07-28 defines ("Error Codes"). */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** What tells an answer from another: a text or a whole number, given back as it came. */
export type RpcId = string | number | bigint;

export interface RpcRequest {
  readonly kind: "request";
  readonly id: RpcId;
  readonly method: string;
  readonly params: JsonObject;
}

/** What wants no answer: a notification, or an answer to a question of ours. We ask none. */
export interface RpcStatement {
  readonly kind: "notification" | "response";
  readonly method: string;
  readonly params: JsonObject;
}

export type RpcMessage = RpcRequest | RpcStatement;

/** An answer that is no success: a JSON-RPC error and the HTTP status that it comes with. */
export class RpcError extends AmbitError {
  readonly rpcCode: number;
  readonly status: number;
  readonly data: JsonObject | undefined;

  constructor(rpcCode: number, message: string, { status = 200, data }: { readonly status?: number; readonly data?: JsonObject } = {}) {
    super("McpRefused", message);
    this.rpcCode = rpcCode;
    this.status = status;
    this.data = data;
  }
}

const noParams: JsonObject = Object.freeze(Object.create(null));

/** Reads one message. Throws `RpcError` -32600 with status 400; `idIn` tells for which request. */
export const messageIn = (value: JsonValue): RpcMessage => {
  if (!isJsonObject(value) || value.jsonrpc !== "2.0") throw malformed("a message is a JSON-RPC 2.0 object");
  const { id, method, params = noParams } = value;
  if (method === undefined && (value.result !== undefined || value.error !== undefined)) {
    return { kind: "response", method: "", params: noParams };
  }
  if (typeof method !== "string") throw malformed("a message has a method");
  if (!isJsonObject(params)) throw malformed("params is an object");
  if (id === undefined) return { kind: "notification", method, params };
  if (!isId(id)) throw malformed("an id is a string or a whole number");
  return { kind: "request", id, method, params };
};

/** The id of what may be no proper message, null where it has none that could be given back. */
export const idIn = (value: JsonValue): RpcId | null => (isJsonObject(value) && isId(value.id) ? value.id : null);

const isId = (id: JsonValue | undefined): id is RpcId => typeof id === "string" || typeof id === "bigint" || Number.isInteger(id);

const malformed = (message: string): RpcError => new RpcError(rpcCodes.invalidRequest, `Invalid request: ${message}`, { status: 400 });

/** A result before it is written: JSON text of its own members, and what its `_meta` says. */
export interface ResultParts {
  readonly members: string;
  readonly meta?: JsonObject;
}

/** The answer to a request, around the result's JSON text. */
export const resultMessage = (id: RpcId, result: string): string => `{"jsonrpc":"2.0","id":${compactJson(id)},"result":${result}}`;

/** Without an id where it could not be read: MCP leaves it out, where JSON-RPC has null. */
export const errorMessage = (id: RpcId | null, { rpcCode, message, data }: RpcError): string =>
  compactJson({
    jsonrpc: "2.0",
    ...(id === null ? {} : { id }),
    error: { code: rpcCode, message, ...(data === undefined ? {} : { data }) },
  });

export const notificationMessage = (method: string, params?: JsonObject): string =>
  compactJson({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) });
