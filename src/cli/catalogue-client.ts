import { Invalid, messageOf, Refused, Transient } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";

export interface CatalogueAddress {
  readonly url: string;
  readonly token?: string;
}

export const answerLimits = { maxLength: 64 * 1024 * 1024, maxDepth: 128 };

export interface CatalogueAnswer {
  /** Exactly as it came. */
  readonly text: string;
  readonly headers: Headers;
}

/** The text of `answerOf`. */
export const ask = async (address: CatalogueAddress, path: string, body?: string): Promise<string> =>
  (await answerOf(address, path, body)).text;

/** Asks a running catalogue. Throws `Transient` where nobody answers, `Refused` for 401, `Invalid` for another 4xx. */
export const answerOf = async (address: CatalogueAddress, path: string, body?: string): Promise<CatalogueAnswer> => {
  const url = urlOf(address.url, path);
  const headers: Record<string, string> = address.token === undefined ? {} : { authorization: `Bearer ${address.token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(url, body === undefined ? { headers } : { method: "POST", headers, body }).catch((cause: unknown) => {
    throw new Transient(
      "CatalogueUnreachable",
      `no catalogue answers at ${url.origin}: ${causeOf(cause)}. Is \`ambit up\` running there?`,
      { cause },
    );
  });
  const text = await response.text();
  if (response.ok) return { text, headers: response.headers };
  if (response.status === 401)
    throw new Refused("Unauthorized", "the catalogue does not know this token: give the one `ambit up` printed (--token or AMBIT_TOKEN)");
  const problem = messageIn(text) ?? `HTTP status ${response.status}`;
  if (response.status >= 500) throw new Transient("CatalogueFailed", problem);
  throw new Invalid("CatalogueRefused", problem);
};

export const askJson = async (address: CatalogueAddress, path: string, body?: string): Promise<JsonObject> => {
  const parsed = parseJson(await ask(address, path, body), answerLimits);
  if (!isJsonObject(parsed))
    throw new Transient("CatalogueFailed", "the catalogue's answer is not a JSON object; is this URL a catalogue's?");
  return parsed;
};

export const textOf = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");

const urlOf = (base: string, path: string): URL => {
  try {
    return new URL(path, base.endsWith("/") ? base : `${base}/`);
  } catch (cause) {
    throw new Invalid("UrlInvalid", `${JSON.stringify(base)} is not a URL such as http://127.0.0.1:7780`, undefined, { cause });
  }
};

const causeOf = (error: unknown): string => {
  const inner = error instanceof Error ? error.cause : undefined;
  return messageOf(inner instanceof Error ? inner : error);
};

const messageIn = (text: string): string | undefined => {
  try {
    const parsed = parseJson(text, answerLimits);
    if (!isJsonObject(parsed)) return undefined;
    const error = parsed.error;
    return textOf(isJsonObject(error) ? error.message : (parsed.message ?? error)) || undefined;
  } catch {
    return undefined;
  }
};
