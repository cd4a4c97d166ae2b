import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readEgressSettings } from "../../../../src/operator/egress/read-settings.ts";
import { defaultEgressSettings } from "../../../../src/operator/egress/settings.ts";

describe("what an installation decides about egress", () => {
  it("is the default where nothing is written", () => {
    assert.deepEqual(readEgressSettings({}, "ambit-system"), {
      ...defaultEgressSettings,
      rules: { ...defaultEgressSettings.rules, addresses: { privateRanges: [], refusedRanges: [] } },
    });
  });

  it("is what is written", () => {
    const { rules, names, converge, routeLimit, nameServers } = readEgressSettings(
      {
        privateRanges: ["10.0.0.0/8"],
        refusedRanges: ["10.96.0.0/12", "fd00::/8"],
        widestRange: { ipv4: 24 },
        serviceNamespaces: { agents: ["support"] },
        hostsByNamespace: { agents: ["*.example.com"] },
        nameServers: ["10.96.0.10", "10.96.0.10:5353", "[2001:db8::53]:53", "2001:db8::53"],
        ttlFloor: "10s",
        drain: "2m",
        settle: "500ms",
        addressesPerComponent: 50,
      },
      "ambit",
    );
    assert.deepEqual(rules.addresses, { privateRanges: ["10.0.0.0/8"], refusedRanges: ["10.96.0.0/12", "fd00::/8"] });
    assert.deepEqual(rules.widestRange, { ipv4: 24, ipv6: 48 });
    assert.equal(rules.ambitNamespace, "ambit");
    assert.deepEqual([names.ttlFloorMs, names.drainMs, converge.settleMs, routeLimit, nameServers.length], [10_000, 120_000, 500, 50, 4]);
  });

  const refused: Record<string, { written: unknown; code: string; message: RegExp }> = {
    "a field that there isn't": { written: { privateRange: [] }, code: "EgressSettingsInvalid", message: /privateRange/ },
    "a list that is none": { written: { refusedRanges: "10.0.0.0/8" }, code: "EgressSettingsInvalid", message: /\/refusedRanges/ },
    "a range that is none": { written: { refusedRanges: ["10.0.0.0/33"] }, code: "AddressRangeInvalid", message: /10\.0\.0\.0\/33/ },
    "a host that is none": { written: { hostsByNamespace: { a: ["ftp://x"] } }, code: "AllowedHostInvalid", message: /ftp/ },
    "a time without a unit": { written: { drain: "5" }, code: "EgressSettingsInvalid", message: /\/drain/ },
    "a floor above the ceiling": { written: { ttlFloor: "10m" }, code: "EgressSettingsInvalid", message: /ttlCeiling/ },
    "a name for a name server": { written: { nameServers: ["dns.test"] }, code: "EgressSettingsInvalid", message: /\/nameServers\/0/ },
    nothing: { written: null, code: "EgressSettingsInvalid", message: /object/ },
  };
  for (const [what, { written, code, message }] of Object.entries(refused)) {
    it(`refuses ${what}`, () => assert.throws(() => readEgressSettings(written, "ambit-system"), { code, message }));
  }
});
