import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defaultEgressRules, type EgressRules, egressIntents } from "../../../src/egress/intent.ts";

/** One word a line: what an entry of a Workload in namespace `agents` comes to. */
const readOf = (entry: string, rules: EgressRules = defaultEgressRules): string => {
  const [intent] = egressIntents([entry], "agents", rules);
  assert.ok(intent);
  assert.equal(intent.entry, entry);
  switch (intent.kind) {
    case "name":
      return `name ${intent.name} ${intent.ports}`;
    case "range":
      return `range ${intent.base}/${intent.prefix} ${intent.ports}`;
    case "service":
      return `service ${intent.namespace}/${intent.service} as ${intent.host} ${intent.ports}`;
    case "closed":
      return `closed ${intent.closed.reason}`;
  }
};

describe("an entry of allowedHosts under a NetworkPolicy", () => {
  const cases: Record<string, string> = {
    "api.example.com": "name api.example.com 80,443",
    "https://API.example.com": "name api.example.com 443",
    "http://api.example.com": "name api.example.com 80",
    "api.example.com:8443": "name api.example.com 8443",
    "8.8.8.8": "range 8.8.8.8/32 80,443",
    "8.8.0.0/16:53": "range 8.8.0.0/16 53",
    "[2606:4700::]/48:443": "range 2606:4700::/48 443",
    "tickets.agents.svc:8080": "service agents/tickets as tickets.agents.svc 8080",
    "http://tickets.agents.svc.cluster.local": "service agents/tickets as tickets.agents.svc.cluster.local 80",
    "pod-0.tickets.agents.svc:80": "name pod-0.tickets.agents.svc 80",
    "*.example.com": "closed BackendCannotExpress",
    "*": "closed BackendCannotExpress",
    "ftp://example.com": "closed AllowedHostInvalid",
    "tickets.support.svc:8080": "closed ServiceRefused",
    "catalogue.ambit-system.svc": "closed ServiceRefused",
    "8.0.0.0/8:53": "closed AddressRefused",
    "[2600::]/32:443": "closed AddressRefused",
    "169.254.169.254": "closed AddressRefused",
    "10.0.0.7": "closed AddressRefused",
    "[::ffff:169.254.169.254]:80": "closed AddressRefused",
    "168.63.0.0/16:80": "closed AddressRefused",
    "192.0.0.0/16:80": "closed AddressRefused",
    "203.0.0.0/16:443": "closed AddressRefused",
  };
  for (const [entry, read] of Object.entries(cases)) it(`${entry} is ${read}`, () => assert.equal(readOf(entry), read));

  it("reaches Services of other namespaces where the installation says so", () => {
    const to = (serviceNamespaces: EgressRules["serviceNamespaces"]) => ({ ...defaultEgressRules, serviceNamespaces });
    assert.match(readOf("tickets.support.svc:8080", to({ agents: ["support"] })), /^service support/);
    assert.match(readOf("tickets.support.svc:8080", to({ agents: ["*"] })), /^service support/);
    assert.match(readOf("tickets.support.svc:8080", to({ others: ["*"] })), /^closed/);
    assert.match(readOf("catalogue.ambit-system.svc", to({ agents: ["*"] })), /^closed ServiceRefused/);
  });

  it("stays within what the namespace may ask for", () => {
    const rules = { ...defaultEgressRules, hostsByNamespace: { agents: ["*.example.com", "https://api.github.com"] } };
    assert.match(readOf("api.example.com", rules), /^name/);
    assert.match(readOf("https://api.github.com", rules), /^name/);
    assert.equal(readOf("api.github.com", rules), "closed NotPermitted");
    assert.equal(readOf("example.com", rules), "closed NotPermitted");
    assert.equal(readOf("https://example.org", { ...rules, hostsByNamespace: { agents: [] } }), "closed NotPermitted");
    assert.match(readOf("https://example.org", { ...rules, hostsByNamespace: { toString: [] } }), /^name/);
  });

  it("opens private ranges that are configured, without what is refused in them", () => {
    const rules = { ...defaultEgressRules, addresses: { privateRanges: ["10.0.0.0/8"], refusedRanges: ["10.96.0.0/24", "10.244.0.0/16"] } };
    assert.match(readOf("10.20.0.0/16:5432", rules), /^range/);
    assert.match(readOf("10.96.1.0/24:5432", rules), /^range/);
    assert.equal(readOf("10.96.0.0/16:5432", rules), "closed AddressRefused");
    assert.equal(readOf("10.244.3.0/24:5432", rules), "closed AddressRefused");
    assert.equal(readOf("192.168.0.0/24:5432", rules), "closed AddressRefused");
  });

  it("says what is wrong, for a person", () => {
    const [intent] = egressIntents(["10.96.0.0/12:443"], "agents", defaultEgressRules);
    assert.match(intent?.kind === "closed" ? intent.closed.message : "", /wider than the \/16/);
  });
});
