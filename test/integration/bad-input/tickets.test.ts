import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, afterEach, before, describe, it } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { signTicket } from "../../../src/tickets/ticket.ts";
import { fixture, type HostUnderTest, startHost } from "../host-under-test.ts";

const attack = (name: string) => ({ interface: "ambit:hostile/attacks@0.1.0", function: name });
const body = JSON.stringify({ text: "hello" });

describe("a call without a ticket of its own", () => {
  let host: HostUnderTest;
  let used: string;
  before(async () => {
    host = await startHost({ component: fixture("hostile.wasm") });
    used = host.ticketFor(body, attack("echo"));
    assert.equal((await host.request("POST", "/v1/call", body, { "ambit-ticket": used })).body.outcome, "ok");
  });
  after(() => host?.stop());
  afterEach(async () => assert.equal((await host.call(attack("echo"), { text: "still here" })).body.text, "still here"));

  const stranger = generateKeyPairSync("ed25519").privateKey;
  const claimsOf = (ticket: string) => JSON.parse(Buffer.from(ticket.split(".")[0] ?? "", "base64url").toString());
  const tampered = () => {
    const [claims = "", signature] = host.ticketFor(body, attack("calls")).split(".");
    const changed = { ...JSON.parse(Buffer.from(claims, "base64url").toString()), function: "echo" };
    return `${Buffer.from(JSON.stringify(changed)).toString("base64url")}.${signature}`;
  };

  const tickets: Record<string, { ticket: () => string | null; code: string }> = {
    "without a ticket": { ticket: () => null, code: "TicketMissing" },
    "with an empty one": { ticket: () => "", code: "TicketMissing" },
    "with one that is none": { ticket: () => "e30.e30", code: "TicketMalformed" },
    "with one of another call": { ticket: () => host.ticketFor('{"text":"other"}', attack("echo")), code: "TicketBodyMismatch" },
    "with one whose function was changed": { ticket: tampered, code: "TicketSignatureWrong" },
    "with one that a stranger signed": {
      ticket: () => signTicket(stranger, claimsOf(host.ticketFor(body, attack("echo")))),
      code: "TicketSignatureWrong",
    },
    "with a used one": { ticket: () => used, code: "TicketUsed" },
    "with an expired one": {
      ticket: () => host.ticketFor(body, attack("echo"), { iat: Date.now() - 60_000, exp: Date.now() - 30_000 }),
      code: "TicketExpired",
    },
    "with one for another host": { ticket: () => host.ticketFor(body, attack("echo"), { pod: "other" }), code: "TicketMisdirected" },
    "with one for other code": {
      ticket: () => host.ticketFor(body, attack("echo"), { component: sha256Of("other") }),
      code: "TicketMisdirected",
    },
  };
  for (const [what, { ticket, code }] of Object.entries(tickets)) {
    it(`${what} runs nothing: ${code}`, async () => {
      const sent = ticket();
      const answer = await host.request("POST", "/v1/call", body, sent === null ? {} : { "ambit-ticket": sent });
      assert.deepEqual([answer.status, answer.body.refused, answer.body.code], [401, true, code], JSON.stringify(answer.body));
    });
  }
});
