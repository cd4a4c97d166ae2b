import { generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import type { Sha256Digest } from "../api/digest.ts";
import type { HopDocument, SignedDocument } from "../api/host.ts";
import { publicKeyText, signDocument } from "../identity/signed-document.ts";

/** A ticket key signs for this long; the next is made at half of it, so that two overlap and a host that was busy misses none. */
const keyLifetimeMs = 24 * 60 * 60 * 1000;

/** Longest wait of a request for another list of tools. */
const listingPatienceMs = 25_000;

interface SigningKey {
  readonly kid: string;
  readonly key: KeyObject;
  readonly publicKey: string;
  readonly notAfter: number;
}

/**
 * The root key of one run of the embedded runtime and the ticket keys under it. Hosts are started with the root's public half and take everything else
 * only under its signature; no private key leaves this process or touches a disk.
 */
export class OperatorKeys {
  readonly #root = generateKeyPairSync("ed25519");
  readonly #now: () => number;
  #keys: readonly SigningKey[];
  #lastTime = 0;
  #lastHop = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#keys = [newKey(now())];
  }

  /** SPKI DER in base64, as `HostConfig.rootKey` wants it. */
  get rootPublicKey(): string {
    return publicKeyText(this.#root.publicKey);
  }

  /** The key that signs tickets now: the newest that every host was given. */
  get signer(): { readonly kid: string; readonly key: KeyObject } {
    const [oldest] = this.#keys;
    if (!oldest) throw new Error("there is always a ticket key");
    return oldest;
  }

  get rotateEveryMs(): number {
    return keyLifetimeMs / 2;
  }

  /** Makes the next key, which must be delivered before `retireOld` lets it sign. */
  addKey(): void {
    this.#keys = [...this.#keys.slice(-1), newKey(this.#now())];
  }

  retireOld(): void {
    this.#keys = this.#keys.slice(-1);
  }

  /** Asks a host for what its component lists, with patience for another list than the one that is known. */
  listingRequestFor(boot: string, known: Sha256Digest | null): SignedDocument {
    return signDocument(this.#root.privateKey, { kind: "listing", boot, known, waitMs: listingPatienceMs });
  }

  /** What a host is told of a hop; each is newer than the one before. */
  hopFor(boot: string, hop: Pick<HopDocument, "accept" | "reach">): SignedDocument {
    this.#lastHop++;
    return signDocument(this.#root.privateKey, { kind: "hop", boot, version: this.#lastHop, ...hop });
  }

  keySetFor(boot: string): SignedDocument {
    // Each set is newer than the one before, even within a millisecond: a host refuses an old one.
    this.#lastTime = Math.max(this.#now(), this.#lastTime + 1);
    const keys = this.#keys.map(({ kid, publicKey, notAfter }) => ({ kid, publicKey, notAfter }));
    return signDocument(this.#root.privateKey, { kind: "keys", boot, time: this.#lastTime, keys });
  }
}

const newKey = (now: number): SigningKey => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { kid: randomUUID(), key: privateKey, publicKey: publicKeyText(publicKey), notAfter: now + keyLifetimeMs };
};
