import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { isIP } from "node:net";
import { isSha256Digest } from "../api/digest.ts";
import { Invalid, messageOf, Refused } from "../api/errors.ts";
import type {
  AddressTableDocument,
  AnnouncementDocument,
  CanaryDocument,
  CertificateDocument,
  HopDocument,
  HopReach,
  KeySet,
  ListingRequestDocument,
  SignedDocument,
} from "../api/host.ts";
import type { TicketKey } from "../tickets/ticket.ts";

/** Most keys that may be in force at once: one, and one more while keys rotate. */
const maxKeys = 2;
const maxTableEntries = 10_000;
const maxCredentials = 2;
const maxServers = 1000;

/** A key given as SPKI DER in base64. Throws `Invalid` with code `KeyMalformed`. */
export const ed25519PublicKey = (base64: string, what: string): KeyObject => {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(base64, "base64"), format: "der", type: "spki" });
  } catch (error) {
    throw new Invalid("KeyMalformed", `${what} is not a public key in SPKI DER, base64: ${messageOf(error)}`, undefined, { cause: error });
  }
  if (key.asymmetricKeyType !== "ed25519") throw new Invalid("KeyMalformed", `${what} is not an Ed25519 key`);
  return key;
};

export type DeliveredHop = Pick<HopDocument, "accept" | "reach">;

/** Keys that may sign tickets, and the time at which they were signed: the host's only knowledge of the time of day. */
export interface DeliveredKeys {
  readonly keys: ReadonlyMap<string, TicketKey>;
  readonly time: number;
}

/**
 * What the operator delivers under its root key. Every document is bound to this start of the host by its boot id, and no older one replaces a newer.
 *
 * Throws `Refused` (`SignatureWrong`, `DeliveryMisdirected`, `DeliveryOutdated`) and `Invalid` (`DeliveryMalformed`, `KeyMalformed`).
 */
export class Deliveries {
  readonly #root: KeyObject;
  readonly #boot: string;
  #keysTime = Number.NEGATIVE_INFINITY;
  #tableVersion = Number.NEGATIVE_INFINITY;
  #hopVersion = Number.NEGATIVE_INFINITY;

  constructor(root: KeyObject, boot: string) {
    this.#root = root;
    this.#boot = boot;
  }

  takeKeys(document: unknown): DeliveredKeys {
    const set = this.#open(document, "keys") as KeySet;
    if (!Number.isSafeInteger(set.time) || !Array.isArray(set.keys) || set.keys.length === 0 || set.keys.length > maxKeys) {
      throw new Invalid("DeliveryMalformed", `a key set has a time and one to ${maxKeys} keys`);
    }
    if (set.time <= this.#keysTime) throw new Refused("DeliveryOutdated", "a newer key set, or this one, is in force");
    const keys = new Map<string, TicketKey>();
    for (const { kid, publicKey, notAfter } of set.keys) {
      if (typeof kid !== "string" || !Number.isSafeInteger(notAfter))
        throw new Invalid("DeliveryMalformed", "a key has a kid and a notAfter");
      keys.set(kid, { key: ed25519PublicKey(String(publicKey), `the key ${JSON.stringify(kid)}`), notAfter });
    }
    this.#keysTime = set.time;
    return { keys, time: set.time };
  }

  takeAddresses(document: unknown): AddressTableDocument["table"] {
    const { version, table } = this.#open(document, "addresses") as AddressTableDocument;
    if (!Number.isSafeInteger(version) || !isTable(table)) {
      throw new Invalid(
        "DeliveryMalformed",
        `an address table has a version and at most ${maxTableEntries} lists of addresses by host and port`,
      );
    }
    if (version <= this.#tableVersion)
      throw new Refused("DeliveryOutdated", `an address table of version ${this.#tableVersion} is in force`);
    this.#tableVersion = version;
    return table;
  }

  takeHop(document: unknown): DeliveredHop {
    const { version, accept, reach } = this.#open(document, "hop") as HopDocument;
    if (!Number.isSafeInteger(version) || (accept !== undefined && !areCredentials(accept)) || (reach !== undefined && !isReach(reach)))
      throw new Invalid("DeliveryMalformed", `a hop has a version, and credentials to accept or a reach of at most ${maxServers} servers`);
    if (version <= this.#hopVersion) throw new Refused("DeliveryOutdated", `a hop of version ${this.#hopVersion} is in force`);
    this.#hopVersion = version;
    return { ...(accept && { accept }), ...(reach && { reach }) };
  }

  takeCertificate(document: unknown): string {
    const { certificate } = this.#open(document, "certificate") as CertificateDocument;
    if (typeof certificate !== "string") throw new Invalid("DeliveryMalformed", "a certificate is text, in PEM");
    return certificate;
  }

  /** How many bytes may be read for a request to `path`. Also throws `Refused` (`DeliveryMisdirected`) where it announces another. */
  takeAnnouncement(document: unknown, path: string): number {
    const announced = this.#open(document, "announcement") as AnnouncementDocument;
    if (!Number.isSafeInteger(announced.bytes)) throw new Invalid("DeliveryMalformed", "an announcement has a number of bytes");
    if (announced.path !== path) throw new Refused("DeliveryMisdirected", "the announcement is for another request");
    return announced.bytes;
  }

  /** Signed like all else: a host is nobody's means to find out what it reaches. */
  takeCanary(document: unknown): { readonly address: string; readonly port: number } {
    const { address, port } = this.#open(document, "canary") as CanaryDocument;
    if (isIP(address) === 0 || !Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new Invalid("DeliveryMalformed", "a canary is an IP address and a port");
    }
    return { address, port };
  }

  /** Signed too: what a component says of itself is for reviewers alone. */
  takeListingRequest(document: unknown): Pick<ListingRequestDocument, "known" | "waitMs"> {
    const { known, waitMs } = this.#open(document, "listing") as ListingRequestDocument;
    if ((known !== null && !isSha256Digest(known)) || !Number.isSafeInteger(waitMs) || waitMs < 0) {
      throw new Invalid("DeliveryMalformed", "a listing is asked for with the digest that is known, or null, and a time to wait");
    }
    return { known, waitMs };
  }

  #open(document: unknown, kind: string): object {
    const { payload, signature } = (typeof document === "object" && document !== null ? document : {}) as Partial<SignedDocument>;
    if (typeof payload !== "string" || typeof signature !== "string") {
      throw new Invalid("DeliveryMalformed", "a delivery is an object with a payload and a signature");
    }
    if (!verify(null, Buffer.from(payload, "utf8"), this.#root, Buffer.from(signature, "base64"))) {
      throw new Refused("SignatureWrong", "the delivery is not signed by the root key that this host was started with");
    }
    let content: unknown;
    try {
      content = JSON.parse(payload);
    } catch (error) {
      throw new Invalid("DeliveryMalformed", "the signed payload is not JSON", undefined, { cause: error });
    }
    if (typeof content !== "object" || content === null) throw new Invalid("DeliveryMalformed", "the signed payload is not an object");
    const { kind: is, boot } = content as { kind?: unknown; boot?: unknown };
    if (is !== kind) throw new Invalid("DeliveryMalformed", `the signed payload is not of kind ${kind}`);
    if (boot !== this.#boot) throw new Refused("DeliveryMisdirected", "the delivery is for another start of a host");
    return content;
  }
}

const isTable = (value: unknown): value is AddressTableDocument["table"] =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.keys(value).length <= maxTableEntries &&
  Object.values(value).every((list) => Array.isArray(list) && list.every((address) => typeof address === "string"));

/** 32 bytes in base64url. */
const credential = /^[A-Za-z0-9_-]{43}$/;

const isCredential = (value: unknown): boolean => typeof value === "string" && credential.test(value);

const areCredentials = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.length <= maxCredentials && value.every(isCredential);

const isReach = (value: HopReach): boolean => {
  const { authority, credential: shown, ca, servers } = value;
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(authority) || !isCredential(shown)) return false;
  if ((ca !== undefined && typeof ca !== "string") || !Array.isArray(servers) || servers.length > maxServers) return false;
  return servers.every(
    ({ address, port, serverName }) =>
      isIP(address) !== 0 &&
      Number.isInteger(port) &&
      port >= 1 &&
      port <= 65_535 &&
      // Without a name to check, a certificate of any of our hosts would do.
      (ca === undefined ? serverName === undefined : typeof serverName === "string"),
  );
};
