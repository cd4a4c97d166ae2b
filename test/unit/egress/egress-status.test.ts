import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { afterProgrammed, beginProgress, type EgressPlan, publishTable } from "../../../src/egress/address-table.ts";
import { type EgressHostStatus, egressStatus } from "../../../src/egress/egress-status.ts";
import { cidrOf, type Route } from "../../../src/egress/route.ts";

const timing = { settleMs: 1_000, narrowAfterMs: 1_000 };

const routes = (...addresses: string[]): Route[] =>
  addresses.map((address) => ({ key: "a.test:443", address, peer: { kind: "range", cidr: cidrOf(address), port: 443 } }));

const plan = (...entries: Partial<EgressPlan["entries"][number]>[]): EgressPlan => ({
  entries: entries.map((entry) => ({ entry: "a.test", routes: [], closed: null, caveat: null, pending: false, ...entry })),
  changesAt: Number.POSITIVE_INFINITY,
});

/** The status `ms` after the plan's peers went into the policy. */
const statusAfter = (ms: number, of: EgressPlan, before: readonly EgressHostStatus[] = []): EgressHostStatus[] => {
  const peers = of.entries.flatMap((entry) => entry.routes.map(({ peer }) => peer));
  const progress = publishTable(afterProgrammed(beginProgress([], 0, timing), peers, 0), of, ms, 0, timing);
  return egressStatus("networkpolicy", of, progress, before, "2026-01-02T03:04:05Z");
};

const now = "2026-01-02T03:04:05Z";
const earlier = "2025-01-01T00:00:00Z";

describe("the status of an allowed host", () => {
  it("tells where it may be dialled, and what lets that out", () => {
    assert.deepEqual(statusAfter(1_000, plan({ routes: routes("8.8.8.8", "8.8.4.4") })), [
      { host: "a.test", addresses: ["8.8.8.8", "8.8.4.4"], addressCount: 2, enforcedBy: "networkpolicy", since: now },
    ]);
  });

  it("tells what of an open entry is left out", () => {
    const caveat = { reason: "AddressRefused", message: "127.0.0.1 is left out" } as const;
    const [entry] = statusAfter(1_000, plan({ routes: routes("8.8.8.8"), caveat }));
    assert.deepEqual([entry?.addresses, entry?.notEnforcedBecause], [["8.8.8.8"], caveat]);
  });

  it("is not open before its policy has settled", () => {
    const [entry] = statusAfter(999, plan({ routes: routes("8.8.8.8") }));
    assert.equal(entry?.notEnforcedBecause?.reason, "Settling");
    assert.equal(entry?.addresses, undefined);
  });

  it("tells why it is closed, and that it is not known yet", () => {
    const closed = { reason: "NotResolved", message: "why" } as const;
    const [known, pending] = statusAfter(0, plan({ closed }, { entry: "b.test", closed, pending: true }));
    assert.deepEqual(known, { host: "a.test", notEnforcedBecause: closed, since: now });
    assert.equal(pending?.notEnforcedBecause?.reason, "Pending");
  });

  it("shows sixteen addresses and counts all", () => {
    const many = Array.from({ length: 40 }, (_, index) => `8.8.8.${index}`);
    const [entry] = statusAfter(1_000, plan({ routes: routes(...many) }));
    assert.deepEqual([entry?.addresses?.length, entry?.addressCount], [16, 40]);
  });

  it("keeps its time while it stays open or closed for the same reason, and no longer", () => {
    const open: EgressHostStatus = { host: "a.test", addresses: ["1.1.1.1"], addressCount: 1, enforcedBy: "networkpolicy", since: earlier };
    const closed: EgressHostStatus = { host: "a.test", notEnforcedBecause: { reason: "NotResolved", message: "before" }, since: earlier };
    const isOpen = plan({ routes: routes("8.8.8.8") });
    const isClosed = plan({ closed: { reason: "NotResolved", message: "now" } });
    const since = (of: EgressPlan, before: EgressHostStatus) => statusAfter(1_000, of, [before])[0]?.since;
    assert.equal(since(isOpen, open), earlier);
    assert.equal(since(isOpen, closed), now);
    assert.equal(since(isClosed, closed), earlier);
    assert.equal(since(isClosed, open), now);
    assert.equal(since(isClosed, { ...open, notEnforcedBecause: { reason: "NotResolved", message: "a part" } }), now);
    assert.equal(since(plan({ closed: { reason: "AddressRefused", message: "" } }), closed), now);
    assert.equal(since(isOpen, { ...open, host: "b.test" }), now);
  });
});
