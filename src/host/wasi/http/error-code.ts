import { AmbitError } from "../../../api/errors.ts";
import { quoted } from "../../../egress/target.ts";

/** `error-code` of `wasi:http/types`, as far as it is given to guests. */
export type ErrorCode =
  | {
      readonly tag:
        | "destination-unavailable"
        | "destination-IP-unroutable"
        | "connection-refused"
        | "connection-terminated"
        | "connection-timeout"
        | "connection-read-timeout"
        | "connection-limit-reached"
        | "TLS-protocol-error"
        | "TLS-certificate-error"
        | "HTTP-request-method-invalid"
        | "HTTP-request-URI-invalid"
        | "HTTP-request-URI-too-long"
        | "HTTP-response-incomplete"
        | "HTTP-response-timeout"
        | "HTTP-upgrade-failed"
        | "HTTP-protocol-error";
    }
  | { readonly tag: "DNS-error"; readonly val: { readonly rcode?: string; readonly infoCode?: number } }
  | { readonly tag: "HTTP-request-body-size" | "HTTP-response-body-size"; readonly val: bigint | undefined }
  | { readonly tag: "HTTP-request-header-section-size" | "HTTP-response-header-section-size"; readonly val: number | undefined }
  | { readonly tag: "internal-error"; readonly val: string };

/**
 * A request that policy refuses. The code `HTTP-request-denied` carries no text, and what a guest makes of a bare code tells neither a model nor a person
 * what to ask for; `internal-error` is the one code with a message.
 */
export const denied = (message: string): ErrorCode => ({ tag: "internal-error", val: `request denied: ${message}` });

/** Ends an exchange with a code of our own choosing; `detail` is for the host's log alone. */
export class ExchangeFailure extends AmbitError {
  readonly errorCode: ErrorCode;

  constructor(errorCode: ErrorCode, detail: string = errorCode.tag) {
    super("ExchangeFailed", detail);
    this.errorCode = errorCode;
  }
}

const bySystemCode: Readonly<Record<string, ErrorCode>> = {
  ECONNREFUSED: { tag: "connection-refused" },
  ETIMEDOUT: { tag: "connection-timeout" },
  ECONNRESET: { tag: "connection-terminated" },
  EPIPE: { tag: "connection-terminated" },
  EHOSTUNREACH: { tag: "destination-unavailable" },
  ENETUNREACH: { tag: "destination-IP-unroutable" },
  EADDRNOTAVAIL: { tag: "destination-IP-unroutable" },
  EPROTO: { tag: "TLS-protocol-error" },
  HPE_HEADER_OVERFLOW: { tag: "HTTP-response-header-section-size", val: undefined },
  ERR_TLS_CERT_ALTNAME_INVALID: { tag: "TLS-certificate-error" },
  HostNotResolved: { tag: "DNS-error", val: { rcode: "the name could not be resolved" } },
  ERR_ACCESS_DENIED: denied("this process may not use the network"),
};

const certificateFault = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH|CRL_)/;

/** What the guest is told of a failure. Addresses and system messages stay with the host. */
export const errorCodeOf = (error: unknown, host: string): ErrorCode => {
  if (error instanceof ExchangeFailure) return error.errorCode;
  const code = systemCode(error);
  if (code === "AddressRefused") return denied(`${quoted(host)} resolves to an address that may not be dialled`);
  if (code === "HostNotInTable") return denied(`no address of ${quoted(host)} may be dialled`);
  const known = bySystemCode[code];
  if (known !== undefined) return known;
  if (certificateFault.test(code)) return { tag: "TLS-certificate-error" };
  if (code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) return { tag: "TLS-protocol-error" };
  if (code.startsWith("HPE_")) return { tag: "HTTP-protocol-error" };
  return { tag: "internal-error", val: `the request to ${quoted(host)} failed` };
};

/** By these a guest concludes that nothing was sent. */
const ofNoConnection: ReadonlySet<ErrorCode["tag"]> = new Set([
  "DNS-error",
  "destination-unavailable",
  "destination-IP-unroutable",
  "connection-refused",
  "connection-timeout",
  "TLS-protocol-error",
  "TLS-certificate-error",
]);

/** Once there was a connection: the same system codes say no more than that it ended, and what the far side has heard is not known. */
export const onceConnected = (code: ErrorCode): ErrorCode => (ofNoConnection.has(code.tag) ? { tag: "connection-terminated" } : code);

const systemCode = (error: unknown): string => {
  if (typeof error !== "object" || error === null || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
};
