import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { componentPolicy, policyPeersOf } from "../../../src/egress/network-policy.ts";
import { type Peer, peerKey } from "../../../src/egress/route.ts";

const peers: readonly Peer[] = [
  { kind: "range", cidr: "8.8.8.8/32", port: 443 },
  { kind: "pods", namespace: "support", labels: { app: "tickets" }, port: "http" },
  { kind: "range", cidr: "2606:4700::1111/128", port: 443 },
  { kind: "range", cidr: "8.8.8.8/32", port: 80 },
  { kind: "range", cidr: "8.8.8.8/32", port: 443 },
];

describe("the policy of a component", () => {
  it("names each address and port once, and the pods of Services by their labels", () => {
    assert.deepEqual(componentPolicy("github", "api", "ambit-system", peers), {
      podSelector: { matchLabels: { "ambit.dev/workload": "github", "ambit.dev/component": "api" } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ambit-system" } },
              podSelector: {
                matchLabels: { "app.kubernetes.io/name": "ambit" },
                matchExpressions: [{ key: "app.kubernetes.io/component", operator: "In", values: ["operator", "catalogue"] }],
              },
            },
          ],
          ports: [{ protocol: "TCP", port: 8443 }],
        },
      ],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "support" } },
              podSelector: { matchLabels: { app: "tickets" } },
            },
          ],
          ports: [{ protocol: "TCP", port: "http" }],
        },
        {
          to: [{ ipBlock: { cidr: "2606:4700::1111/128" } }, { ipBlock: { cidr: "8.8.8.8/32" } }],
          ports: [{ protocol: "TCP", port: 443 }],
        },
        { to: [{ ipBlock: { cidr: "8.8.8.8/32" } }], ports: [{ protocol: "TCP", port: 80 }] },
      ],
    });
  });

  it("lets nothing out where nothing is granted", () => {
    assert.deepEqual(componentPolicy("github", "api", "ambit-system", []).egress, []);
  });

  it("is the same for the same peers in any order, and gives them back", () => {
    const port = fc.integer({ min: 1, max: 65_535 });
    const range = fc.record({
      kind: fc.constant("range" as const),
      cidr: fc.oneof(
        fc.ipV4().map((address) => `${address}/32`),
        fc.ipV6().map((address) => `${address}/128`),
      ),
      port,
    });
    const pods = fc.record({
      kind: fc.constant("pods" as const),
      namespace: fc.constantFrom("a", "b"),
      labels: fc.constantFrom({ app: "x" }, { app: "y" }, { app: "x", tier: "z" }),
      port: fc.oneof(port, fc.constantFrom("http", "80")),
    });
    fc.assert(
      fc.property(fc.array(fc.oneof(range, pods), { maxLength: 20 }), (some) => {
        const policy = componentPolicy("w", "c", "ambit-system", some);
        assert.deepEqual(componentPolicy("w", "c", "ambit-system", some.toReversed()), policy);
        const back = policyPeersOf(policy).map(peerKey).sort();
        assert.deepEqual(back, [...new Set(some.map(peerKey))].sort());
      }),
      { numRuns: 200 },
    );
  });

  it("is read where somebody else wrote in it what Ambit would not have", () => {
    const egress = [
      {},
      { to: [{}], ports: [{ protocol: "TCP", port: 1 }] },
      { to: [{ ipBlock: { cidr: "1.1.1.1/32" } }], ports: [{ protocol: "TCP" }] },
      { to: [{ ipBlock: { cidr: "1.1.1.1/32" } }], ports: [{ protocol: "TCP", port: 53 }] },
    ];
    assert.deepEqual(policyPeersOf({ egress } as unknown as Parameters<typeof policyPeersOf>[0]), [
      { kind: "range", cidr: "1.1.1.1/32", port: 53 },
    ]);
    assert.deepEqual(policyPeersOf(undefined), []);
  });
});
