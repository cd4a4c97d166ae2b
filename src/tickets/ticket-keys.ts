import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import { Invalid, messageOf } from "../api/errors.ts";
import type { KeySet } from "../api/host.ts";

/** A key that signs tickets from `notBefore` on, and whose tickets hosts take until `notAfter` (milliseconds since the epoch). */
export interface TicketSigningKey {
  readonly kid: string;
  /** Ed25519. */
  readonly key: KeyObject;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Where a cluster keeps them: one entry of a Secret, `{ "keys.json": … }`. */
export const ticketKeysEntry = "keys.json";

const lifetimeMs = 24 * 60 * 60 * 1000;

/** The next key is made when the one in use has signed for so long; hosts then hold both. */
const renewAfterMs = lifetimeMs / 2;

/** How far back the first key begins, which nobody can wait for: the clock of who signs may be behind. */
const allowedSkewMs = 5 * 60 * 1000;

/** Time to bring a new key to every host before anything is signed with it. */
const settlingMs = 60 * 60 * 1000;

/**
 * The keys as they should be now: those that ended go, and the next is made in time. At most two. The same array when nothing is to be done.
 *
 *     key 1   |signs········|·taken·|
 *     key 2            |made|signs········|·taken·|
 */
export const rotatedTicketKeys = (keys: readonly TicketSigningKey[], now: number): readonly TicketSigningKey[] => {
  const kept = keys.filter(({ notAfter }) => notAfter > now);
  const newest = kept.at(-1);
  if (newest === undefined) return [newKey(now - allowedSkewMs)];
  if (now < newest.notBefore + renewAfterMs) return kept.length === keys.length ? keys : kept;
  return [newest, newKey(now + settlingMs)];
};

/** The key to sign with now: the newest that has begun. */
export const ticketSigner = (keys: readonly TicketSigningKey[], now: number): TicketSigningKey | undefined =>
  keys.findLast(({ notBefore, notAfter }) => notBefore <= now && now < notAfter);

const newKey = (notBefore: number): TicketSigningKey => ({
  kid: randomUUID(),
  key: generateKeyPairSync("ed25519").privateKey,
  notBefore,
  notAfter: notBefore + lifetimeMs,
});

/** What hosts are told of the keys: their public halves. */
export const publicTicketKeys = (keys: readonly TicketSigningKey[]): KeySet["keys"] =>
  keys.map(({ kid, key, notAfter }) => ({
    kid,
    publicKey: createPublicKey(key).export({ type: "spki", format: "der" }).toString("base64"),
    notAfter,
  }));

/** The text of the Secret's entry. `[{"kid":…,"privateKey":<PKCS8 DER, base64>,"notBefore":…,"notAfter":…}]`, the oldest first. */
export const writeTicketKeys = (keys: readonly TicketSigningKey[]): string =>
  JSON.stringify(
    keys.map(({ kid, key, notBefore, notAfter }) => ({
      kid,
      privateKey: key.export({ type: "pkcs8", format: "der" }).toString("base64"),
      notBefore,
      notAfter,
    })),
  );

/** The inverse. Throws `Invalid` with code `TicketKeysMalformed`; the message holds nothing of a key. */
export const readTicketKeys = (text: string): readonly TicketSigningKey[] => {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch {
    throw malformed("it is not JSON");
  }
  if (!Array.isArray(entries) || entries.length === 0 || entries.length > 2) throw malformed("it is not a list of one or two keys");
  return entries.map((entry: unknown) => readKey(entry)).sort((a, b) => a.notBefore - b.notBefore);
};

const readKey = (entry: unknown): TicketSigningKey => {
  const { kid, privateKey, notBefore, notAfter } = (typeof entry === "object" && entry !== null ? entry : {}) as Record<string, unknown>;
  if (typeof kid !== "string" || typeof privateKey !== "string") throw malformed("a key has no kid or no private key");
  if (typeof notBefore !== "number" || typeof notAfter !== "number") throw malformed(`the key ${JSON.stringify(kid)} has no times`);
  const key = privateKeyOf(kid, privateKey);
  if (key.asymmetricKeyType !== "ed25519") throw malformed(`the key ${JSON.stringify(kid)} is not Ed25519`);
  return { kid, key, notBefore, notAfter };
};

const privateKeyOf = (kid: string, base64: string): KeyObject => {
  try {
    return createPrivateKey({ key: Buffer.from(base64, "base64"), format: "der", type: "pkcs8" });
  } catch (error) {
    throw malformed(`the key ${JSON.stringify(kid)} is not PKCS8: ${messageOf(error)}`);
  }
};

const malformed = (why: string): Invalid => new Invalid("TicketKeysMalformed", `the ticket keys can't be used: ${why}`);
