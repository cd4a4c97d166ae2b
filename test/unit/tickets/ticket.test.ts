import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { AmbitError } from "../../../src/api/errors.ts";
import type { TicketClaims } from "../../../src/api/ticket.ts";
import { allowedSkewMs, freshNonce, maxTicketLifetimeMs, signTicket, verifyTicket } from "../../../src/tickets/ticket.ts";

const now = 1_800_000_000_000;
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const other = generateKeyPairSync("ed25519");
const keys = new Map([
  ["current", { key: publicKey, notAfter: now + 1000 }],
  ["past", { key: publicKey, notAfter: now }],
]);
const component = sha256Of("component");
const expected = { component, pod: "pod-1", boot: "boot-1" };
const claims: TicketClaims = {
  v: 1,
  kid: "current",
  body: sha256Of("{}"),
  interface: "example:github/issues@0.1.0",
  function: "list-issues",
  definition: `v1:${sha256Of("definition")}`,
  component,
  grant: sha256Of("grant"),
  pod: "pod-1",
  boot: "boot-1",
  iat: now - 100,
  exp: now + 30_000,
  nonce: freshNonce(),
};

const codeOf = (ticket: string | undefined, at = now): string => {
  try {
    verifyTicket(ticket, keys, expected, at);
    return "accepted";
  } catch (error) {
    assert.ok(error instanceof AmbitError, String(error));
    return error.code;
  }
};

const signed = (change: Partial<TicketClaims>): string => signTicket(privateKey, { ...claims, ...change });
const sealed = (payload: string): string => {
  const part = Buffer.from(payload).toString("base64url");
  return `${part}.${"A".repeat(86)}`;
};

describe("a ticket", () => {
  it("gives back exactly the claims that were signed", () => {
    assert.deepEqual(verifyTicket(signed({}), keys, expected, now), claims);
    assert.deepEqual(verifyTicket(signed({ interface: null }), keys, expected, now).interface, null);
  });

  const cases: Record<string, { ticket: string | undefined; at?: number; code: string }> = {
    "is missing": { ticket: undefined, code: "TicketMissing" },
    "is empty": { ticket: "", code: "TicketMissing" },
    "is another key's": { ticket: signTicket(other.privateKey, claims), code: "TicketSignatureWrong" },
    "was changed after it was signed": {
      ticket: `${Buffer.from(JSON.stringify({ ...claims, function: "delete-all" })).toString("base64url")}.${signed({}).split(".")[1]}`,
      code: "TicketSignatureWrong",
    },
    "names a key that was never delivered": { ticket: signed({ kid: "unknown" }), code: "TicketKeyUnknown" },
    "names a prototype's property as its key": { ticket: signed({ kid: "__proto__" }), code: "TicketKeyUnknown" },
    "names a key that is past its time": { ticket: signed({ kid: "past" }), code: "TicketKeyUnknown" },
    "has expired": { ticket: signed({ iat: now - 60_000, exp: now - allowedSkewMs }), code: "TicketExpired" },
    "has expired within the allowed skew": { ticket: signed({ iat: now - 60_000, exp: now - allowedSkewMs + 1 }), code: "accepted" },
    "is from the future": { ticket: signed({ iat: now + allowedSkewMs + 1, exp: now + 60_000 }), code: "TicketNotYetValid" },
    "is from a future within the allowed skew": { ticket: signed({ iat: now + allowedSkewMs, exp: now + 60_000 }), code: "accepted" },
    "lives longer than any may": { ticket: signed({ exp: now - 100 + maxTicketLifetimeMs + 1 }), code: "TicketMalformed" },
    "ends before it begins": { ticket: signed({ iat: now + 5, exp: now + 5 }), code: "TicketMalformed" },
    "is for another component": { ticket: signed({ component: sha256Of("other") }), code: "TicketMisdirected" },
    "is for another pod": { ticket: signed({ pod: "pod-2" }), code: "TicketMisdirected" },
    "is for another start of the host": { ticket: signed({ boot: "boot-2" }), code: "TicketMisdirected" },
    "has three parts": { ticket: `${signed({})}.x`, code: "TicketMalformed" },
    "has one part": { ticket: "abc", code: "TicketMalformed" },
    "is not base64url": { ticket: "a+b/.c==", code: "TicketMalformed" },
    "is longer than tickets are": { ticket: `${"a".repeat(9000)}.b`, code: "TicketMalformed" },
    "holds no JSON": { ticket: sealed("{"), code: "TicketMalformed" },
    "holds an array": { ticket: sealed("[]"), code: "TicketMalformed" },
    "holds null": { ticket: sealed("null"), code: "TicketMalformed" },
    "has no claims": { ticket: sealed("{}"), code: "TicketMalformed" },
    "is of another version": { ticket: sealed(JSON.stringify({ ...claims, v: 2 })), code: "TicketMalformed" },
    "has a digest that is none": { ticket: sealed(JSON.stringify({ ...claims, body: "sha256:abc" })), code: "TicketMalformed" },
    "has times that are no integers": { ticket: sealed(JSON.stringify({ ...claims, exp: "later" })), code: "TicketMalformed" },
  };
  for (const [name, { ticket, at, code }] of Object.entries(cases)) {
    it(`that ${name}: ${code}`, () => assert.equal(codeOf(ticket, at), code));
  }
});
