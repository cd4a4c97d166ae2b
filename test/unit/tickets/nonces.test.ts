import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Refused } from "../../../src/api/errors.ts";
import { UsedNonces } from "../../../src/tickets/nonces.ts";

const refusal = (code: string) => (error: unknown) => error instanceof Refused && error.code === code;

describe("used nonces", () => {
  it("are refused a second time for as long as they are remembered", () => {
    const nonces = new UsedNonces(10);
    nonces.use("a", 100, 0);
    assert.throws(() => nonces.use("a", 100, 99), refusal("TicketUsed"));
  });

  it("are forgotten once no ticket with them can be valid", () => {
    const nonces = new UsedNonces(10);
    nonces.use("a", 100, 0);
    nonces.use("b", 200, 100);
    assert.equal(nonces.size, 1);
  });

  it("stop further tickets rather than be forgotten too early", () => {
    const nonces = new UsedNonces(2);
    nonces.use("a", 100, 0);
    nonces.use("b", 100, 0);
    assert.throws(() => nonces.use("c", 100, 50), refusal("TooManyTickets"));
    nonces.use("c", 200, 100);
    assert.throws(() => nonces.use("c", 200, 100), refusal("TicketUsed"));
  });
});
