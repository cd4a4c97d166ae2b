import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { TLSSocket } from "node:tls";
import { AmbitError, Invalid } from "../api/errors.ts";

/** An answer that is no success: a status and a stable code, told to the caller as `{"error": {"code", "message", "at"?}}`. */
export class HttpError extends AmbitError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
    this.headers = headers;
  }
}

/** Whom the server answers to: what browsers and rebinding names may not get around. */
export interface HttpGuard {
  /** Names that `Host` may hold, in lower case and without a port: `localhost`, `catalogue.ambit.svc`. */
  readonly hosts: ReadonlySet<string>;
  /** Values that `Origin` may hold besides the catalogue's own. A request without one comes from no browser page and is let through. */
  readonly origins: ReadonlySet<string>;
}

/**
 * Refuses what a web page could have sent: a name that was made to resolve to us (DNS rebinding), a page's own origin. An address that we were reached at is
 * always a fine `Host`: no name was resolved, and probes come by pod address.
 */
export const guardRequest = (request: IncomingMessage, guard: HttpGuard): void => {
  const host = hostWithoutPort(request.headers.host);
  if (host === undefined || !(guard.hosts.has(host) || isOwnAddress(host, request.socket.localAddress))) {
    throw new HttpError(421, "HostUnknown", "the Host header names no host that this catalogue answers for");
  }
  const origin = request.headers.origin;
  if (origin !== undefined && !guard.origins.has(origin) && !isOwnOrigin(origin, request)) {
    throw new HttpError(403, "OriginRefused", "requests from web pages are refused, whatever their origin, unless it was configured");
  }
};

/** The origin of what the catalogue itself serves, under the name that it was called by: some clients say so without being a page. */
const isOwnOrigin = (origin: string, { headers, socket }: IncomingMessage): boolean =>
  origin === `${socket instanceof TLSSocket ? "https" : "http"}://${headers.host}`;

const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/;

const hostWithoutPort = (header: string | undefined): string | undefined => {
  const name = hostPattern.exec(header?.toLowerCase() ?? "")?.[1];
  return name?.startsWith("[") ? name.slice(1, -1) : name?.replace(/\.$/, "");
};

const isOwnAddress = (host: string, local: string | undefined): boolean =>
  local !== undefined && isIP(host) !== 0 && (host === local || `::ffff:${host}` === local);

/** The token of `Authorization: Bearer …`, null where there is none. */
export const bearerToken = (request: IncomingMessage): string | null =>
  /^Bearer +([A-Za-z0-9._~+/=-]{1,16384})$/i.exec(request.headers.authorization ?? "")?.[1] ?? null;

/**
 * The parameters of a query, each at most once and only known ones, so that a misspelt one is told rather than ignored.
 * Throws `HttpError` 400 `QueryInvalid`.
 */
export const queryOf = <Name extends string>(search: string, known: readonly Name[]): { readonly [N in Name]?: string } => {
  const found: { [N in Name]?: string } = {};
  for (const [name, value] of new URLSearchParams(search)) {
    const match = known.find((candidate) => candidate === name);
    if (match === undefined)
      throw new HttpError(400, "QueryInvalid", `there is no query parameter '${shown(name)}' here; known: ${known.join(", ")}`);
    if (found[match] !== undefined) throw new HttpError(400, "QueryInvalid", `the query parameter '${match}' is given twice`);
    found[match] = value;
  }
  return found;
};

/** Text of a caller's, short and without control characters, for a message. */
export const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text).slice(1, -1);

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The body of a request as text, of at most `maxBytes`, each chunk told to `take` before it is kept. Throws what `take` throws, and `HttpError` 413 `BodyTooLarge`, 415 `ContentTypeUnsupported` or 400 `BodyNotUtf8`. How long
 * it may take is the server's `requestTimeout`.
 */
export const readJsonText = async (request: IncomingMessage, maxBytes: number, take: (bytes: number) => void): Promise<string> => {
  if (!/^application\/json *(;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new HttpError(415, "ContentTypeUnsupported", "send the body as Content-Type: application/json");
  }
  if ((request.headers["content-encoding"] ?? "identity") !== "identity") {
    throw new HttpError(415, "ContentTypeUnsupported", "send the body without a Content-Encoding");
  }
  const bytes = await readBytes(request, maxBytes, take);
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new Invalid("BodyNotUtf8", "the body is not UTF-8", undefined, { cause });
  }
};

const readBytes = (request: IncomingMessage, maxBytes: number, take: (bytes: number) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = () => new HttpError(413, "BodyTooLarge", `the body has more than the ${maxBytes} bytes allowed`);
    if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
      reject(tooLarge());
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > maxBytes) throw tooLarge();
        take(chunk.length);
        chunks.push(chunk);
      } catch (thrown) {
        // The rest is read and dropped, within the time that a request may take: a connection closed on it would lose the answer.
        request.removeAllListeners("data").resume();
        chunks.length = 0;
        reject(thrown);
      }
    });
    let isWhole = false;
    request.on("end", () => {
      isWhole = true;
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
    });
    // A request's only error is that its connection is gone: the caller's doing, or its network's.
    request.on("error", (cause) => reject(incomplete(cause)));
    request.on("close", () => {
      if (!isWhole) reject(incomplete());
    });
  });

const incomplete = (cause?: Error): HttpError =>
  new HttpError(400, "BodyIncomplete", "the connection ended before the body did", {}, cause && { cause });

/** Sends one whole answer. Nothing of ours may be kept by a shared cache or read as another type. */
export const respond = (
  response: ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  // A string leaves in one write together with the headers.
  response.end(body);
};

/** Tells an error. What was not thrown on purpose is told without its message, which may hold anything. */
export const respondError = (response: ServerResponse, thrown: unknown): void => {
  if (thrown instanceof HttpError) {
    respond(response, thrown.status, errorBody(thrown.code, thrown.message), thrown.headers);
  } else if (thrown instanceof Invalid) {
    respond(response, 400, errorBody(thrown.code, thrown.message, thrown.at));
  } else {
    respond(response, 500, errorBody("Internal", "the catalogue failed; its log says why"));
  }
};

const errorBody = (code: string, message: string, at?: string): string => JSON.stringify({ error: { code, message, at } });
