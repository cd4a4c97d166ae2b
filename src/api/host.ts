import type { ContentBlock } from "./content.ts";
import type { Sha256Digest } from "./digest.ts";
import type { JsonValue } from "./json.ts";

/**
 * How a host process is started and spoken to. The cluster's pods and the embedded runtime's child processes are the same in this.
 *
 * A host starts empty: it knows the digest of its component and the operator's root public key. It takes, in this order, a signed certificate (with TLS), a
 * signed key set, a signed address table and the component's bytes; only then is it ready. Calls come with a ticket (`src/api/ticket.ts`).
 */
export interface HostConfig {
  readonly component: Sha256Digest;
  /** Ed25519 public key, SPKI DER in base64: what signs key sets and address tables. */
  readonly rootKey: string;
  /** In a pod the downward API tells it, in the environment variable `AMBIT_POD_UID`. */
  readonly podUid: string;
  readonly listen: { readonly address: string; readonly port: number };
  /** `tls` in a pod: with a key of the host's own, for which the operator delivers a certificate. `http` on loopback. */
  readonly transport: "http" | "tls";
  readonly allowedHosts: readonly string[];
  /** Where names are looked up: only in the delivered table (cluster), or by the system's resolver under the same address rules (embedded). */
  readonly resolver: "table" | "system";
  /** Embedded only: dial this address for that `host:port`, whatever it is. `{ "api.github.test:80": "127.0.0.1:8123" }` */
  readonly hostOverrides: Readonly<Record<string, string>>;
  /** Embedded only: private address ranges that may be dialled, as CIDRs. */
  readonly privateRanges?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Folders whose files become variables of the guest besides; what is in a later one wins, and all of them win over `environment`. */
  readonly secretFolders?: readonly HostSecretFolder[];
  readonly mounts: readonly HostMount[];
  readonly limits: HostLimits;
  /** Where a component that serves HTTP takes the requests of its bridge (`HopDocument.accept`); such a host takes no calls. */
  readonly serve?: { readonly address: string; readonly port: number };
  /** For the bridge to a component: requests to `http://<authority>` go by `HopDocument.reach`, besides what `allowedHosts` admits. */
  readonly hop?: { readonly authority: string };
  /** Calls that one instance may serve; 1 is a fresh instance a call. */
  readonly callsPerInstance: number;
  /** Folder for the component's bytes and what was compiled from them; the only place the process may write besides its mounts. */
  readonly cacheFolder: string;
}

export interface HostSecretFolder {
  /** For messages. */
  readonly name: string;
  /** Folder on this machine, with one file for each variable or header; that of a volume of kubelet's is one. */
  readonly folder: string;
  /** `environment`: a file is the variable of its name. `headers`: it is a header that the bridge to an MCP server sends. */
  readonly as: "environment" | "headers";
}

export interface HostMount {
  /** Name of the volume, for messages. */
  readonly name: string;
  /** Folder on this machine. */
  readonly folder: string;
  /** Absolute path that the guest sees. */
  readonly mountPath: string;
  readonly readOnly: boolean;
}

export interface HostLimits {
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  readonly resultBytes: number;
  readonly concurrency: number;
}

export const defaultHostLimits: HostLimits = {
  timeoutMs: 30_000,
  memoryBytes: 256 * 1024 * 1024,
  resultBytes: 1024 * 1024,
  concurrency: 4,
};

/** Signed by the root key: `signature` is Ed25519 over the UTF-8 bytes of `payload`, base64. The payload is JSON of one of the shapes below. */
export interface SignedDocument {
  readonly payload: string;
  readonly signature: string;
}

/** `time` is when it was signed (milliseconds since the epoch): the host measures a ticket's age from it, on a monotonic clock. */
export interface KeySet {
  readonly kind: "keys";
  readonly boot: string;
  readonly time: number;
  /** At most two are valid at once. `publicKey` is SPKI DER in base64. */
  readonly keys: readonly { readonly kid: string; readonly publicKey: string; readonly notAfter: number }[];
}

/** The certificate for this start of the host, in PEM: for the key that it has shown by TLS, made out as `hostServerName` says. */
export interface CertificateDocument {
  readonly kind: "certificate";
  readonly boot: string;
  readonly certificate: string;
}

/** A table with a version not above the one in force is refused. */
export interface AddressTableDocument {
  readonly kind: "addresses";
  readonly boot: string;
  readonly version: number;
  /** `{ "api.example.com:443": ["192.0.2.7", "2001:db8::7"] }`: host and effective port; a host that is no key may not be dialled. */
  readonly table: Readonly<Record<string, readonly string[]>>;
}

/**
 * The hop between the host of an MCP server and that of its bridge (`PUT /v1/hop`): a credential that both hosts know and neither guest, and for the bridge where the server is.
 * A version not above the one in force is refused.
 */
export interface HopDocument {
  readonly kind: "hop";
  readonly boot: string;
  readonly version: number;
  /** For a server: what requests may show in the header `ambit-hop`, one or two credentials of 32 bytes in base64url. */
  readonly accept?: readonly string[];
  /** For a bridge. */
  readonly reach?: HopReach;
}

export interface HopReach {
  /** One label, as in `HostConfig.hop`. */
  readonly authority: string;
  readonly credential: string;
  /** Certificates in PEM: with them each server is spoken to over TLS as its `serverName`. */
  readonly ca?: string;
  /** Tried one after the other where nothing could be sent; none while none is ready. */
  readonly servers: readonly { readonly address: string; readonly port: number; readonly serverName?: string }[];
}

/** Header of a request to a server's host. */
export const hopHeader = "ambit-hop";

/**
 * Says that a long body follows, in the header `ambit-announcement` of the request that carries it (the signed document as JSON, base64url): over TLS a host
 * reads no more than a little from who can't show one.
 */
export interface AnnouncementDocument {
  readonly kind: "announcement";
  readonly boot: string;
  readonly path: string;
  readonly bytes: number;
}

export const announcementHeader = "ambit-announcement";

/** Asks a host to connect to a place that its pod must not reach: an IP address where somebody listens. */
export interface CanaryDocument {
  readonly kind: "canary";
  readonly boot: string;
  readonly address: string;
  readonly port: number;
}

/**
 * Asks which tools a component lists (`POST /v1/listing`). Where the listing is still the one that is `known`, by its digest, the answer waits for another, at most
 * `waitMs`.
 */
export interface ListingRequestDocument {
  readonly kind: "listing";
  readonly boot: string;
  readonly known: Sha256Digest | null;
  readonly waitMs: number;
}

/**
 * `digest` is of the last complete listing, null before there is one; `listing` is there where that is not the one that was known (src/grants/listing.ts has its shape).
 * `fault` says why there is none, or no newer one.
 */
export interface ListingAnswer {
  readonly digest: Sha256Digest | null;
  readonly listing: JsonValue | null;
  readonly fault: { readonly code: string; readonly message: string } | null;
}

/** Whether it could; `how` is `connected` or the system's error code. */
export interface CanaryAnswer {
  readonly reached: boolean;
  readonly how: string;
}

/**
 * What a host answers to `POST /v1/call`, always with status 200 once the ticket holds.
 *
 * - `ok`: `text` is what the model reads; `structured` is present when there is a value.
 * - `tool-error`: the function returned its error; `text` says it.
 * - `failed`: a trap, a deadline, a cap, a busy host. `ran` tells whether guest code may have had an effect.
 *
 * `content` is there where an answer is more than one text; `text` then holds its texts, joined by line breaks.
 */
export type HostReply =
  | {
      readonly outcome: "ok";
      readonly text: string;
      readonly content?: readonly ContentBlock[];
      readonly structured?: JsonValue;
      readonly stats: HostStats;
    }
  | { readonly outcome: "tool-error"; readonly text: string; readonly content?: readonly ContentBlock[]; readonly stats: HostStats }
  | { readonly outcome: "failed"; readonly code: string; readonly text: string; readonly ran: boolean; readonly stats: HostStats };

export interface HostStats {
  readonly queueMs: number;
  readonly runMs: number;
  /** Absent where the call used nothing of this. */
  readonly use?: HostUse;
}

/** What a call used up besides time and memory. */
export interface HostUse {
  /** Requests to other hosts, denied ones among them. */
  readonly requests: number;
  readonly deniedRequests: number;
  /** Bytes of their bodies, and of their answers'. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly writtenFileBytes: number;
  /** The first requests that were not denied. */
  readonly exchanges: readonly HostExchange[];
}

/** One request that a tool made: `host` is the entry of `allowedHosts` that admitted it, `atMs` from the beginning of the run, `status` null where no answer came. */
export interface HostExchange {
  readonly method: string;
  readonly host: string;
  readonly atMs: number;
  readonly ms: number;
  readonly status: number | null;
}

/** Answer to a call whose ticket or arguments do not hold (status 401, 409 or 422): nothing ran. */
export interface HostRefusal {
  readonly refused: true;
  readonly code: string;
  readonly message: string;
}
