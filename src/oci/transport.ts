import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, request } from "undici";
import { AmbitError, messageOf, Refused, Stalled, Transient } from "../api/errors.ts";

/** One HTTP exchange with a registry or its token server. Redirects are answers like any other. */
export interface RegistryRequest {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface RegistryResponse {
  readonly status: number;
  header(name: string): string | null;
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up the body unread; for answers of which only the head matters. */
  discard(): void;
}

/**
 * Sends one request. Rejects with `Refused` (`RegistryAddressRefused`), `Stalled` (`RegistryUntrusted`, a certificate that does not hold) or
 * `Transient` (`RegistryUnavailable`); reading `body` may reject as `Transient` too.
 */
export type RegistryTransport = (request: RegistryRequest) => Promise<RegistryResponse>;

export interface TransportOptions {
  /** Why an IP address may not be dialled, or null if it may. Every address is asked about, of redirects and token servers too. */
  readonly refusedAddress: (address: string) => string | null;
  /** How names are resolved; the system's resolver by default. */
  readonly lookup?: LookupFunction;
  /** Certificate authorities in PEM, in place of the system's. */
  readonly ca?: readonly string[];
}

const silenceMs = 30_000;

/** Talks HTTP through undici, dialling only addresses that pass the screen: the ones that were resolved are the ones that are dialled. */
export const createTransport = ({ refusedAddress, lookup = systemLookup as LookupFunction, ca }: TransportOptions): RegistryTransport => {
  const agent = new Agent({
    connect: { lookup: screenedLookup(lookup, refusedAddress), timeout: silenceMs, ...(ca === undefined ? {} : { ca: [...ca] }) },
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    maxHeaderSize: 32 * 1024,
    connections: 4,
  });
  return async ({ method, url, headers, body, signal }) => {
    refuseLiteral(url, refusedAddress);
    try {
      const response = await request(url, {
        dispatcher: agent,
        method,
        headers: { "user-agent": "ambit", ...headers },
        body: body ?? null,
        signal,
      });
      return {
        status: response.statusCode,
        header: (name) => firstOf(response.headers[name]),
        body: chunksOf(response.body, url, signal),
        // A body that is given up errors once its socket closes, and nobody is left who could care.
        discard: () => response.body.on("error", () => {}).destroy(),
      };
    } catch (thrown) {
      throw failure(thrown, url, signal);
    }
  };
};

/** An address written in the URL is never looked up, so the lookup cannot screen it. */
const refuseLiteral = (url: URL, refusedAddress: TransportOptions["refusedAddress"]): void => {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const reason = isIP(host) === 0 ? null : refusedAddress(host);
  if (reason !== null) throw addressRefused(url.host, `${host} is ${reason}`);
};

const screenedLookup =
  (lookup: LookupFunction, refusedAddress: TransportOptions["refusedAddress"]): LookupFunction =>
  (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const verdicts = (Array.isArray(found) ? found : [found]).map((entry) => {
        const { address, family } = typeof entry === "string" ? { address: entry, family: isIP(entry) } : entry;
        return { address, family, reason: refusedAddress(address) };
      });
      const usable = verdicts.filter(({ reason }) => reason === null);
      const [first] = usable;
      if (first === undefined) {
        const why = verdicts.map(({ address, reason }) => `${address} is ${reason}`).join("; ");
        return callback(addressRefused(name, why), []);
      }
      return options.all
        ? callback(
            null,
            usable.map(({ address, family }) => ({ address, family })),
          )
        : callback(null, first.address, first.family);
    });
  };

const addressRefused = (host: string, why: string): Refused =>
  new Refused("RegistryAddressRefused", `the registry host ${host} cannot be dialled: ${why}`);

const firstOf = (value: string | string[] | undefined): string | null => (Array.isArray(value) ? value.join(", ") : value) ?? null;

async function* chunksOf(body: AsyncIterable<Uint8Array>, url: URL, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (thrown) {
    throw failure(thrown, url, signal);
  }
}

/** Codes with which TLS says that the other side is not who it should be (OpenSSL's `X509_V_ERR_…`, and Node's own). */
const untrusted =
  /^(ERR_TLS_CERT_ALTNAME_INVALID|CERT_|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|INVALID_CA|HOSTNAME_MISMATCH)/;

const failure = (thrown: unknown, url: URL, signal: AbortSignal): unknown => {
  if (thrown instanceof AmbitError) return thrown;
  if (signal.aborted) return signal.reason;
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  if (untrusted.test(code)) {
    return new Stalled("RegistryUntrusted", `the certificate of ${url.host} does not hold: ${messageOf(thrown)} (${code})`, {
      cause: thrown,
    });
  }
  return new Transient("RegistryUnavailable", `${url.host} did not answer: ${messageOf(thrown) || code}`, { cause: thrown });
};
