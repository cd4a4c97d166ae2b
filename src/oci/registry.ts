import { Invalid, Refused, Stalled, Transient, Waiting } from "../api/errors.ts";
import { isJsonObject, type JsonValue, parseJson } from "../api/json.ts";
import { parseChallenges } from "./challenge.ts";
import type { Credentials, RegistryCredentials } from "./docker-config.ts";
import { formatReference, type RegistryReference } from "./reference.ts";
import type { RegistryResponse, RegistryTransport } from "./transport.ts";

/** Reads content of one repository (OCI distribution specification 1.1, "Pull"). A token is fetched once and kept as long as this object. */
export interface Repository {
  /**
   * The bytes at `manifests/REF` or `blobs/DIGEST`, at most `maxBytes` of them. Throws `Stalled` (`ImageNotFound`, `Unauthorized`, `RegistryUntrusted`),
   * `Refused` (`RegistryAddressRefused`, `RegistryRedirectRefused`), `Invalid` (`ImageTooLarge`), `Waiting` (`RegistryBusy`) or `Transient`
   * (`RegistryUnavailable`).
   */
  read(path: string, accept: readonly string[], maxBytes: number, onBytes?: (received: number) => void): Promise<Uint8Array>;
}

export interface RepositoryOptions {
  readonly transport: RegistryTransport;
  readonly credentials: RegistryCredentials;
  /** Whether a registry is spoken to without TLS. */
  readonly isPlainHttp: (registry: string) => boolean;
  readonly signal: AbortSignal;
}

const maxRedirects = 5;
const maxTokenBytes = 256 * 1024;
const maxErrorBytes = 8 * 1024;
const defaultWaitMs = 60_000;
const longestWaitMs = 3_600_000;

/** Registries on this machine are for development and seldom have a certificate; every other client makes the same exception. */
export const isLoopbackRegistry = (registry: string): boolean =>
  /^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\])(:[0-9]+)?$/.test(registry);

export const openRepository = (reference: RegistryReference, options: RepositoryOptions): Repository => {
  const { transport, credentials, isPlainHttp, signal } = options;
  const name = formatReference(reference);
  const plain = isPlainHttp(reference.registry);
  const host = reference.registry === "docker.io" ? "registry-1.docker.io" : reference.registry;
  const base = new URL(`${plain ? "http" : "https"}://${host}/v2/${reference.repository}/`);
  const known = credentials.credentialsFor(reference);
  let authorization: string | null = known?.kind === "bearer" ? `Bearer ${known.token}` : null;

  const send = (url: URL, headers: Record<string, string>): Promise<RegistryResponse> => transport({ method: "GET", url, headers, signal });

  /** Only the registry itself gets the credentials: storage that it redirects to signs its own URLs, and is another party. */
  const follow = async (path: string, accept: readonly string[]): Promise<RegistryResponse> => {
    let url = new URL(path, base);
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const own = url.origin === base.origin && authorization !== null ? { authorization } : {};
      const response = await send(url, { accept: accept.join(", "), ...own });
      if (![301, 302, 303, 307, 308].includes(response.status)) return response;
      response.discard();
      url = redirectTarget(response.header("location"), url, plain, name);
    }
    throw new Refused("RegistryRedirectRefused", `${host} redirects more than ${maxRedirects} times for ${name}`);
  };

  const answerTo = async (path: string, accept: readonly string[]): Promise<RegistryResponse> => {
    const first = await follow(path, accept);
    if (first.status !== 401 || authorization !== null) return first;
    const granted = await authorize(first.header("www-authenticate") ?? "");
    if (granted === null) return first;
    first.discard();
    authorization = granted;
    return follow(path, accept);
  };

  const authorize = async (header: string): Promise<string | null> => {
    for (const { scheme, parameters } of parseChallenges(header)) {
      if (scheme === "basic" && known?.kind === "password") return basic(known);
      const realm = parameters.get("realm");
      if (scheme === "bearer" && realm !== undefined) {
        const scope = parameters.get("scope") ?? `repository:${reference.repository}:pull`;
        return `Bearer ${await tokenFrom(realm, parameters.get("service") ?? "", scope)}`;
      }
    }
    return null;
  };

  const tokenFrom = async (realm: string, service: string, scope: string): Promise<string> => {
    const url = tokenServer(realm, plain, host);
    const response = await transport(tokenRequest(url, service, scope, known, signal));
    if (response.status !== 200) throw await failureOf(response, `the token server ${url.host}`);
    const token = tokenIn(await collected(response, maxTokenBytes, `the answer of the token server ${url.host}`));
    if (token === null) throw new Transient("RegistryUnavailable", `the token server ${url.host} answered without a token for ${name}`);
    return token;
  };

  const failureOf = async (response: RegistryResponse, who: string): Promise<Error> => {
    const said = await registrySays(response);
    switch (response.status) {
      case 401:
      case 403: {
        const helper = known === null ? credentials.helperFor(reference) : null;
        const hint =
          helper !== null
            ? `; the Docker configuration names the credential helper ${JSON.stringify(helper)}, which is a program and is not run: put an entry into auths`
            : known === null
              ? "; there were no credentials for it"
              : "; the credentials for it were not accepted";
        return new Stalled("Unauthorized", `${who} does not let us read ${name} (HTTP ${response.status}${said})${hint}`);
      }
      case 404:
        return new Stalled("ImageNotFound", `${who} has no ${name}${said}`);
      case 429:
        return new Waiting("RegistryBusy", `${who} asks us to come back later for ${name}${said}`, waitOf(response.header("retry-after")));
      default:
        return new Transient("RegistryUnavailable", `${who} answered HTTP ${response.status} for ${name}${said}`);
    }
  };

  return {
    read: async (path, accept, maxBytes, onBytes) => {
      const response = await answerTo(path, accept);
      if (response.status !== 200) throw await failureOf(response, host);
      return collected(response, maxBytes, name, onBytes);
    },
  };
};

const redirectTarget = (location: string | null, from: URL, plain: boolean, name: string): URL => {
  const url = location === null ? null : URL.parse(location, from);
  if (url === null) throw new Refused("RegistryRedirectRefused", `${from.host} redirects ${name} to no URL`);
  if (url.protocol !== "https:" && !(plain && url.protocol === "http:")) {
    throw new Refused("RegistryRedirectRefused", `${from.host} redirects ${name} to ${url.protocol}//${url.host}, which is not https`);
  }
  return url;
};

const tokenServer = (realm: string, plain: boolean, host: string): URL => {
  const url = URL.parse(realm);
  if (url === null || (url.protocol !== "https:" && !(plain && url.protocol === "http:"))) {
    throw new Refused(
      "RegistryRedirectRefused",
      `${host} names a token server that is no https URL: ${JSON.stringify(realm.slice(0, 200))}`,
    );
  }
  return url;
};

/** The distribution project's token protocol: GET with Basic for a password, the OAuth 2 form for a refresh token. */
const tokenRequest = (
  url: URL,
  service: string,
  scope: string,
  known: Credentials | null,
  signal: AbortSignal,
): Parameters<RegistryTransport>[0] => {
  if (known?.kind === "refresh-token") {
    const form = new URLSearchParams({ grant_type: "refresh_token", service, scope, client_id: "ambit", refresh_token: known.token });
    return { method: "POST", url, headers: { "content-type": "application/x-www-form-urlencoded" }, body: form.toString(), signal };
  }
  const asked = new URL(url);
  if (service !== "") asked.searchParams.set("service", service);
  asked.searchParams.set("scope", scope);
  return { method: "GET", url: asked, headers: known?.kind === "password" ? { authorization: basic(known) } : {}, signal };
};

const basic = ({ username, password }: Extract<Credentials, { kind: "password" }>): string =>
  `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;

const tokenIn = (body: Uint8Array): string | null => {
  const answer = jsonOf(body);
  if (!isJsonObject(answer)) return null;
  const token = answer.token ?? answer.access_token;
  // What goes into a header must not be able to end it.
  return typeof token === "string" && /^[!-~]+$/.test(token) ? token : null;
};

/** What the registry gives as the reason, made fit for a message: it is somebody else's text. */
const registrySays = async (response: RegistryResponse): Promise<string> => {
  const body = await collected(response, maxErrorBytes, "the error").catch(() => new Uint8Array());
  const answer = jsonOf(body);
  const errors = isJsonObject(answer) && Array.isArray(answer.errors) ? answer.errors : [];
  const first: JsonValue = errors[0] ?? null;
  if (!isJsonObject(first)) return "";
  const words = [first.code, first.message].filter((word) => typeof word === "string").join(": ");
  const plain = words.replace(/[^\x20-\x7e]+/g, " ").slice(0, 200);
  return plain === "" ? "" : `, ${JSON.stringify(plain)}`;
};

const jsonOf = (body: Uint8Array): JsonValue => {
  try {
    return parseJson(Buffer.from(body).toString("utf8"));
  } catch {
    // Not JSON: the answer says nothing that we can use, which is what null stands for.
    return null;
  }
};

const waitOf = (retryAfter: string | null): number => {
  const seconds = retryAfter !== null && /^[0-9]+$/.test(retryAfter) ? Number(retryAfter) : Number.NaN;
  return Number.isNaN(seconds) ? defaultWaitMs : Math.min(Math.max(seconds * 1000, 1000), longestWaitMs);
};

const collected = async (
  response: RegistryResponse,
  maxBytes: number,
  what: string,
  onBytes?: (received: number) => void,
): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  let received = 0;
  for await (const chunk of response.body) {
    received += chunk.length;
    if (received > maxBytes) throw new Invalid("ImageTooLarge", `${what} is longer than the ${maxBytes} bytes it may have`);
    chunks.push(chunk);
    onBytes?.(received);
  }
  return Buffer.concat(chunks, received);
};
