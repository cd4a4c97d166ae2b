import { type KeyObject, randomBytes, sign, verify } from "node:crypto";
import { isSha256Digest, type Sha256Digest } from "../api/digest.ts";
import { Refused } from "../api/errors.ts";
import type { TicketClaims } from "../api/ticket.ts";

/** Header that carries a ticket, in lower case as Node spells header names. */
export const ticketHeader = "ambit-ticket";

/** Longest time from `iat` to `exp`: it bounds how long a nonce must be remembered. */
export const maxTicketLifetimeMs = 120_000;

/** How far the clocks of the one who signs and the one who checks may differ. */
export const allowedSkewMs = 10_000;

/** Longest ticket read, in characters; a ticket of ours has about 1,000. */
const maxTicketLength = 8192;

/** A public key that may sign tickets, until `notAfter` (milliseconds since the epoch). */
export interface TicketKey {
  readonly key: KeyObject;
  readonly notAfter: number;
}

/** What the one who checks knows by itself; each of it must be in the ticket exactly so. */
export interface TicketExpectation {
  readonly component: Sha256Digest;
  readonly pod: string;
  readonly boot: string;
}

/** 128 random bits for `TicketClaims.nonce`. */
export const freshNonce = (): string => randomBytes(16).toString("base64url");

/** Signs the claims with an Ed25519 private key. */
export const signTicket = (key: KeyObject, claims: TicketClaims): string => {
  const payload = Buffer.from(JSON.stringify(claims)).toString("base64url");
  return `${payload}.${sign(null, Buffer.from(payload, "ascii"), key).toString("base64url")}`;
};

/**
 * Checks a ticket's form, signature, times and addressee and gives its claims. Whether its body digest is that of the request and whether its nonce
 * is new is for the caller to check, in that order: a ticket whose body differs must not use up its nonce.
 *
 * Throws `Refused`: `TicketMissing`, `TicketMalformed`, `TicketKeyUnknown`, `TicketSignatureWrong`, `TicketExpired`, `TicketNotYetValid`, `TicketMisdirected`.
 */
export const verifyTicket = (
  ticket: string | undefined,
  keys: ReadonlyMap<string, TicketKey>,
  expected: TicketExpectation,
  now: number,
): TicketClaims => {
  if (ticket === undefined || ticket === "") throw new Refused("TicketMissing", `the call has no ticket in the header ${ticketHeader}`);
  const { payload, signature, claims } = readTicket(ticket);
  const signer = keys.get(claims.kid);
  if (signer === undefined || signer.notAfter <= now) {
    throw new Refused("TicketKeyUnknown", `the ticket is signed with a key that is not in force`);
  }
  if (!verify(null, Buffer.from(payload, "ascii"), signer.key, signature)) {
    throw new Refused("TicketSignatureWrong", "the ticket's signature does not verify");
  }
  checkTimes(claims, now);
  if (claims.component !== expected.component) throw misdirected("component");
  if (claims.pod !== expected.pod) throw misdirected("pod");
  if (claims.boot !== expected.boot) throw misdirected("boot");
  return claims;
};

const checkTimes = (claims: TicketClaims, now: number): void => {
  if (claims.exp - claims.iat > maxTicketLifetimeMs || claims.exp <= claims.iat) {
    throw new Refused("TicketMalformed", `a ticket's lifetime is above 0 and at most ${maxTicketLifetimeMs} ms`);
  }
  if (now >= claims.exp + allowedSkewMs) throw new Refused("TicketExpired", "the ticket has expired");
  if (now < claims.iat - allowedSkewMs) throw new Refused("TicketNotYetValid", "the ticket is from the future");
};

const misdirected = (what: string): Refused => new Refused("TicketMisdirected", `the ticket is for another ${what}`);

const malformed = (why: string): Refused => new Refused("TicketMalformed", `the ticket is malformed: ${why}`);

const readTicket = (ticket: string): { payload: string; signature: Buffer; claims: TicketClaims } => {
  if (ticket.length > maxTicketLength) throw malformed("too long");
  const [payload, signatureText, rest] = ticket.split(".");
  if (payload === undefined || signatureText === undefined || rest !== undefined) throw malformed("not two parts");
  if (!isBase64url(payload) || !isBase64url(signatureText)) throw malformed("not base64url");
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
  } catch (error) {
    throw new Refused("TicketMalformed", "the ticket is malformed: not JSON", { cause: error });
  }
  return { payload, signature: Buffer.from(signatureText, "base64url"), claims: asClaims(claims) };
};

const isBase64url = (text: string): boolean => /^[A-Za-z0-9_-]+$/.test(text);

/** Claims with every field of the right type; the definition digest is carried, not interpreted. */
const asClaims = (value: unknown): TicketClaims => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed("not an object");
  const claims = value as Record<string, unknown>;
  if (claims.v !== 1) throw malformed("unknown version");
  for (const name of ["kid", "function", "definition", "pod", "boot", "nonce"]) {
    if (typeof claims[name] !== "string" || claims[name] === "") throw malformed(`no ${name}`);
  }
  if (claims.interface !== null && typeof claims.interface !== "string") throw malformed("no interface");
  for (const name of ["body", "component", "grant"]) {
    const digest = claims[name];
    if (typeof digest !== "string" || !isSha256Digest(digest)) throw malformed(`no ${name} digest`);
  }
  for (const name of ["iat", "exp"]) if (!Number.isSafeInteger(claims[name])) throw malformed(`no ${name}`);
  return value as TicketClaims;
};
