import { createHmac, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Caller } from "../caller.ts";
import { type SessionRevision, sessionRevisions } from "./revisions.ts";

export interface SessionDeps {
  /** The key that tickets are signed with now. Session ids are made under a key derived from it, so that each replica of the catalogue knows the others' ids. */
  readonly signer: () => { readonly kid: string; readonly key: KeyObject };
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
}

/** What a session id says. `name` is of no use to who reads it in a journal. */
export interface Session {
  readonly revision: SessionRevision;
  readonly name: string;
}

/** After this a client has to initialize again. */
const lifetimeMs = 24 * 60 * 60 * 1000;
/** Clocks of two replicas may differ by so much. */
const skewMs = 60_000;
/** Ended ones that are remembered until they would have ended by themselves. */
const endedKept = 10_000;
/** Derived keys that are remembered: what a replica has seen of rotation. */
const keysKept = 4;

const derivation = "ambit mcp session 1";
const [tagBytes, revisionBytes, timeBytes, randomBytes, macBytes] = [4, 1, 6, 16, 32] as const;
const bodyBytes = tagBytes + revisionBytes + timeBytes + randomBytes;
const idPattern = new RegExp(`^[A-Za-z0-9_-]{${Math.ceil(((bodyBytes + macBytes) * 4) / 3)}}$`);

/**
 * Sessions of the revisions before 2026-07-28. A session has no state but its revision, which its id carries: made from random bits and authenticated for one
 * user, so nothing is held for it however many there are, and any replica takes it, before and after a restart. It is no credential: each request has its token as well.
 *
 *     base64url( key tag 4 | revision 1 | time of making, seconds 6 | random 16 | HMAC-SHA-256 over that and the user 32 )
 */
export class Sessions {
  readonly #deps: SessionDeps;
  readonly #keys = new LRUCache<string, Buffer>({ max: keysKept });
  readonly #ended: LRUCache<string, true>;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.#ended = new LRUCache({ max: endedKept, ttl: lifetimeMs, perf: { now: deps.now } });
  }

  open(caller: Caller, revision: SessionRevision): string {
    const { tag, key } = this.#currentKey();
    const head = Buffer.alloc(tagBytes + revisionBytes + timeBytes);
    head.write(tag, "hex");
    head.writeUInt8(sessionRevisions.indexOf(revision), tagBytes);
    head.writeUIntBE(Math.floor(this.#deps.now() / 1000), tagBytes + revisionBytes, timeBytes);
    const body = Buffer.concat([head, this.#deps.random(randomBytes)]);
    return Buffer.concat([body, macOf(key, body, caller)]).toString("base64url");
  }

  /** Null for an id that isn't ours, isn't this caller's, or has ended. */
  find(caller: Caller, id: string): Session | null {
    if (!idPattern.test(id) || this.#ended.has(id)) return null;
    const bytes = Buffer.from(id, "base64url");
    const body = bytes.subarray(0, bodyBytes);
    this.#currentKey();
    const key = this.#keys.get(body.toString("hex", 0, tagBytes));
    if (key === undefined || !timingSafeEqual(macOf(key, body, caller), bytes.subarray(bodyBytes))) return null;
    const revision = sessionRevisions[body.readUInt8(tagBytes)];
    const age = this.#deps.now() - body.readUIntBE(tagBytes + revisionBytes, timeBytes) * 1000;
    if (revision === undefined || age < -skewMs || age > lifetimeMs) return null;
    return { revision, name: body.toString("base64url", bodyBytes - randomBytes) };
  }

  /** Other replicas go on taking the id: what it opens is nothing. */
  end(id: string): void {
    this.#ended.set(id, true);
  }

  #currentKey(): { readonly tag: string; readonly key: Buffer } {
    const { kid, key: signingKey } = this.#deps.signer();
    const tag = createHmac("sha256", derivation)
      .update(kid)
      .digest("hex")
      .slice(0, 2 * tagBytes);
    const known = this.#keys.get(tag);
    if (known !== undefined) return { tag, key: known };
    const key = Buffer.from(hkdfSync("sha256", signingKey.export({ type: "pkcs8", format: "der" }), "", derivation, macBytes));
    this.#keys.set(tag, key);
    return { tag, key };
  }
}

const macOf = (key: Buffer, body: Buffer, { user }: Caller): Buffer => createHmac("sha256", key).update(body).update(user).digest();
