import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import type { AmbitError } from "../../../src/api/errors.ts";
import {
  publicTicketKeys,
  readTicketKeys,
  rotatedTicketKeys,
  type TicketSigningKey,
  ticketSigner,
  writeTicketKeys,
} from "../../../src/tickets/ticket-keys.ts";

const minute = 60_000;
const hour = 60 * minute;
const start = Date.UTC(2026, 0, 1);

describe("ticket keys", () => {
  it("over a month: one that signs at any time, never more than two, and each known to hosts for an hour before it signs", () => {
    let keys: readonly TicketSigningKey[] = [];
    const knownSince = new Map<string, number>();
    const signers = new Set<string>();
    for (let now = start; now < start + 30 * 24 * hour; now += 10 * minute) {
      keys = rotatedTicketKeys(keys, now);
      for (const { kid } of keys) if (!knownSince.has(kid)) knownSince.set(kid, now);
      assert.ok(keys.length <= 2);
      const signer = ticketSigner(keys, now);
      assert.ok(signer, new Date(now).toISOString());
      // What it signs now is taken for as long as a ticket lives.
      assert.ok(signer.notAfter > now + 10 * minute);
      if (signers.size > 0 && !signers.has(signer.kid)) assert.ok(now - (knownSince.get(signer.kid) ?? now) >= 50 * minute);
      signers.add(signer.kid);
    }
    assert.ok(signers.size > 50);
  });

  it("are left alone while nothing is due", () => {
    const keys = rotatedTicketKeys([], start);
    assert.equal(rotatedTicketKeys(keys, start + 11 * hour), keys);
    assert.equal(rotatedTicketKeys(keys, start + 12 * hour).length, 2);
  });

  it("are made anew after a time in which nobody rotated them", () => {
    const keys = rotatedTicketKeys([], start);
    const later = rotatedTicketKeys(keys, start + 72 * hour);
    assert.equal(later.length, 1);
    assert.ok(ticketSigner(later, start + 72 * hour));
    assert.equal(ticketSigner(keys, start + 72 * hour), undefined);
  });

  it("can be used at once by somebody whose clock is behind", () => {
    assert.ok(ticketSigner(rotatedTicketKeys([], start), start - 4 * minute));
  });

  it("come back from their Secret as they were, and hosts are told only of the public half", () => {
    const keys = rotatedTicketKeys(rotatedTicketKeys([], start), start + 13 * hour);
    const again = readTicketKeys(writeTicketKeys(keys));
    assert.deepEqual(
      again.map(({ kid, notBefore, notAfter }) => [kid, notBefore, notAfter]),
      keys.map(({ kid, notBefore, notAfter }) => [kid, notBefore, notAfter]),
    );
    assert.ok(again.every((key, at) => key.key.equals(keys[at]?.key ?? key.key) && keys[at] !== undefined));
    const told = JSON.stringify(publicTicketKeys(keys));
    for (const { privateKey } of JSON.parse(writeTicketKeys(keys)) as { privateKey: string }[]) assert.ok(!told.includes(privateKey));
  });

  const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({ type: "pkcs8", format: "der" }).toString("base64");
  const malformed: Record<string, string> = {
    "are no JSON": "{",
    "are no list": "{}",
    "are none": "[]",
    "are more than two": "[{},{},{}]",
    "have no kid": '[{"privateKey":"","notBefore":0,"notAfter":1}]',
    "have no times": '[{"kid":"a","privateKey":""}]',
    "are no keys": '[{"kid":"a","privateKey":"AAAA","notBefore":0,"notAfter":1}]',
    "are of another kind": JSON.stringify([{ kid: "a", privateKey: rsa, notBefore: 0, notAfter: 1 }]),
  };
  for (const [name, text] of Object.entries(malformed)) {
    it(`that ${name} are refused`, () => {
      assert.throws(
        () => readTicketKeys(text),
        (error: AmbitError) => error.code === "TicketKeysMalformed",
      );
    });
  }
});
