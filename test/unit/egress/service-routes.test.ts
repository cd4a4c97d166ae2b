import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defaultEgressRules, egressIntents } from "../../../src/egress/intent.ts";
import { type ServiceView, type SliceView, serviceRoutes } from "../../../src/egress/service-routes.ts";

const routesOf = (entry: string, service: ServiceView | undefined, slices: readonly SliceView[] = []) => {
  const [intent] = egressIntents([entry], "agents", defaultEgressRules);
  assert.equal(intent?.kind, "service");
  return serviceRoutes(intent as Parameters<typeof serviceRoutes>[0], service, slices);
};

const tickets = (spec: ServiceView["spec"], labels: Record<string, string> = {}): ServiceView => ({
  metadata: { name: "tickets", labels },
  spec: { selector: { app: "tickets" }, clusterIP: "10.96.4.7", ports: [{ port: 8080, targetPort: "http" }], ...spec },
});

describe("a Service among the allowed hosts", () => {
  it("is dialled at its own address, and let out to its pods on their port", () => {
    assert.deepEqual(routesOf("tickets.agents.svc:8080", tickets({ clusterIPs: ["10.96.4.7", "fd00::7"] })), [
      {
        key: "tickets.agents.svc:8080",
        address: "10.96.4.7",
        peer: { kind: "pods", namespace: "agents", labels: { app: "tickets" }, port: "http" },
      },
      {
        key: "tickets.agents.svc:8080",
        address: "fd00::7",
        peer: { kind: "pods", namespace: "agents", labels: { app: "tickets" }, port: "http" },
      },
    ]);
  });

  it("without an address of its own is dialled at its ready pods, on the port that was asked for", () => {
    const slices = [
      { endpoints: [{ addresses: ["10.244.0.9"] }, { addresses: ["10.244.0.8"], conditions: { ready: false } }] },
      { endpoints: [{ addresses: ["10.244.0.7"], conditions: { ready: true } }, { addresses: ["10.244.0.9"] }] },
    ];
    const routes = routesOf("tickets.agents.svc:8080", tickets({ clusterIP: "None" }), slices);
    assert.ok(Array.isArray(routes));
    assert.deepEqual(
      routes.map(({ address, peer }) => [address, peer.port]),
      [
        ["10.244.0.7", 8080],
        ["10.244.0.9", 8080],
      ],
    );
  });

  it("leads nowhere else by a slice that somebody wrote", () => {
    const slices = [{ endpoints: [{ addresses: ["169.254.169.254", "127.0.0.1", "::1"] }] }];
    assert.deepEqual(routesOf("tickets.agents.svc:8080", tickets({ clusterIP: "None" }), slices), {
      reason: "NotResolved",
      message: "the Service agents/tickets has no address yet: no pod that it selects is ready",
    });
  });

  const refused: Record<string, { service: ServiceView | undefined; reason: string; message: RegExp }> = {
    "that is not there": { service: undefined, reason: "ServiceMissing", message: /no Service agents\/tickets/ },
    "without a selector": { service: tickets({ selector: null }), reason: "ServiceRefused", message: /no selector/ },
    "that stands for a name": { service: tickets({ type: "ExternalName" }), reason: "ServiceRefused", message: /ExternalName/ },
    "of another port": { service: tickets({ ports: [{ port: 9090 }] }), reason: "ServiceRefused", message: /no TCP port 8080/ },
    "of UDP": { service: tickets({ ports: [{ port: 8080, protocol: "UDP" }] }), reason: "ServiceRefused", message: /no TCP port 8080/ },
    "that is a tool's own": {
      service: tickets({}, { "app.kubernetes.io/managed-by": "ambit" }),
      reason: "ServiceRefused",
      message: /tools don't reach tools/,
    },
  };
  for (const [which, { service, reason, message }] of Object.entries(refused)) {
    it(`${which} is closed: ${reason}`, () => {
      const closed = routesOf("tickets.agents.svc:8080", service);
      assert.ok("reason" in closed);
      assert.equal(closed.reason, reason);
      assert.match(closed.message, message);
    });
  }
});
