import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { describe, test } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import { certifyHost } from "../../../../src/identity/host-identity.ts";
import { Store } from "../../../../src/kube/store.ts";
import { hopCredentials, hopToDeliver } from "../../../../src/operator/delivery/hop.ts";
import { type HostPod, hostPodOf, noteAnnotations } from "../../../../src/operator/delivery/host-pod.ts";
import { newRootKeys } from "../../../../src/operator/delivery/keyring.ts";
import { byWorkloadLabel } from "../../../../src/operator/informers.ts";
import type { ClusterWorkload, Pod } from "../../../../src/operator/kinds.ts";
import { componentLabels, labels, podAnnotations } from "../../../../src/operator/names.ts";
import { component, workload } from "../workload-world.ts";

const day = 24 * 60 * 60 * 1000;
const now = Date.UTC(2026, 0, 1);
const keys = newRootKeys(now);
const hop = { workloadUid: "uid-of-github", server: "issues" };

describe("the credentials of a hop", () => {
  test("are the same for every operator with the root key, and no others' are", () => {
    const { sent } = hopCredentials(keys.root, hop, now);
    assert.match(sent, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(hopCredentials(keys.root, { ...hop }, now).sent, sent);
    const others = [
      hopCredentials(newRootKeys(now).root, hop, now),
      hopCredentials(keys.root, { ...hop, workloadUid: "another" }, now),
      hopCredentials(keys.root, { ...hop, server: "another" }, now),
      hopCredentials(keys.root, hop, now + 7 * day),
    ];
    assert.equal(new Set([sent, ...others.map((one) => one.sent)]).size, 5);
  });

  test("that one host sends, the other takes, also where it was told up to half a week earlier or later", () => {
    for (let at = now; at < now + 22 * day; at += day / 4) {
      const { sent } = hopCredentials(keys.root, hop, at);
      for (const apart of [-3.5 * day, -day, 0, day, 3.5 * day]) {
        assert.ok(hopCredentials(keys.root, hop, at + apart).accepted.includes(sent), `${apart} apart`);
      }
      assert.equal(hopCredentials(keys.root, hop, at).accepted.length, 2);
    }
  });

  test("change when they say, and not before", () => {
    const { changeInMs, ...first } = hopCredentials(keys.root, hop, now);
    const { changeInMs: _, ...before } = hopCredentials(keys.root, hop, now + changeInMs - 1);
    const { changeInMs: __, ...after } = hopCredentials(keys.root, hop, now + changeInMs);
    assert.deepEqual(before, first);
    assert.notDeepEqual(after, first);
  });
});

describe("what a host is given for its hop", () => {
  const served = (): ClusterWorkload =>
    workload({
      components: [component({ name: "issues-mcp" }), component({ name: "other" })],
      mcpServers: [{ name: "issues", component: "issues-mcp", limits: component().limits }],
    });
  const podOf = (name: string, of: string, changes: { annotations?: Record<string, string>; deletionTimestamp?: string } = {}): Pod => ({
    metadata: {
      name,
      namespace: "agents",
      uid: `uid-of-${name}`,
      resourceVersion: "1",
      labels: { ...componentLabels("github", of), [labels.digest]: "0123456789abcdef" },
      ...changes,
    },
    status: {
      phase: "Running",
      podIP: `10.0.0.${name.length}`,
      containerStatuses: [{ name: "host", containerID: "containerd://1", state: { running: {} } }],
    },
  });
  const server = { [podAnnotations.hop]: "server" };
  const noted = (name: string, boot = "b1", identity = { podUid: `uid-of-${name}`, boot }): Record<string, string> => ({
    ...server,
    ...noteAnnotations({
      boot,
      component: sha256Of("server"),
      certificate: certifyHost(keys.hosts, identity, createPublicKey(newRootKeys(now).hosts.key), now),
    }),
  });
  const bridge = podOf("bridge", "issues", { annotations: { [podAnnotations.hop]: "bridge" } });
  const given = (of: Pod, pods: readonly Pod[], known: ClusterWorkload | null = served()) => {
    const stores = { pods: new Store<Pod>({ workload: byWorkloadLabel }), workloads: new Store<ClusterWorkload>() };
    for (const pod of pods) stores.pods.apply(pod);
    if (known) stores.workloads.apply(known);
    const deps = { stores, root: keys, now: () => now, hopPlaceOf: ({ address }: HostPod) => ({ address, port: 8444 }) };
    const host = hostPodOf(of);
    assert.ok(host);
    return hopToDeliver(deps, host)?.hop;
  };

  test("is for a server what its bridge may send, and for the bridge where the server is", () => {
    const { sent, accepted } = hopCredentials(keys.root, hop, now);
    assert.deepEqual(given(podOf("server", "issues-mcp", { annotations: server }), []), { accept: accepted });
    const pods = [podOf("server", "issues-mcp", { annotations: noted("server") })];
    assert.deepEqual(given(bridge, pods), {
      reach: {
        authority: "issues-mcp",
        credential: sent,
        ca: keys.hosts.certificate,
        servers: [{ address: "10.0.0.6", port: 8444, serverName: "b1.uid-of-server.host.ambit.internal" }],
      },
    });
  });

  test("is nothing for other pods, and for those of before their Workload became another", () => {
    assert.equal(given(podOf("other", "other"), []), undefined);
    assert.equal(given(podOf("other", "other", { annotations: server }), []), undefined);
    assert.equal(given(podOf("issues", "issues-mcp", { annotations: { [podAnnotations.hop]: "bridge" } }), []), undefined);
    assert.equal(given(bridge, [], null), undefined);
    assert.equal(given(bridge, [], workload({ components: [component({ name: "issues-mcp" })] })), undefined);
  });

  test("has the server's pods in an order of its own, that stays where others come and go", () => {
    const names = ["a", "b", "c", "d", "e"];
    const pods = names.map((name) => podOf(name, "issues-mcp", { annotations: noted(name) }));
    const order = (of: string, among: readonly Pod[]): string[] => {
      const bridge = podOf(of, "issues", { annotations: { [podAnnotations.hop]: "bridge" } });
      return (given(bridge, among)?.reach?.servers ?? []).map(({ serverName = "" }) => serverName);
    };
    const whole = order("bridge-1", pods);
    assert.equal(whole.length, names.length);
    assert.deepEqual(
      order("bridge-1", pods.slice(1)),
      whole.filter((name) => !name.includes("uid-of-a.")),
    );
    assert.ok(["bridge-2", "bridge-3", "bridge-4"].some((bridge) => order(bridge, pods).join() !== whole.join()));
  });

  const nobody: Record<string, Pod> = {
    "that has nothing yet": podOf("server", "issues-mcp", { annotations: server }),
    "that is on its way out": podOf("server", "issues-mcp", { annotations: noted("server"), deletionTimestamp: "2026-01-01T00:00:00Z" }),
    "whose certificate is another pod's": podOf("server", "issues-mcp", {
      annotations: noted("server", "b1", { podUid: "uid-of-another", boot: "b1" }),
    }),
    "whose certificate is of another start of it": podOf("server", "issues-mcp", {
      annotations: { ...noted("server", "b1"), [podAnnotations.boot]: "b2" },
    }),
    "whose certificate is none": podOf("server", "issues-mcp", {
      annotations: { ...noted("server"), [podAnnotations.hostCertificate]: "x" },
    }),
    "of another component": podOf("server", "other", { annotations: noted("server") }),
    "that was started before it was a server": podOf("server", "issues-mcp", {
      annotations: { ...noted("server"), [podAnnotations.hop]: "" },
    }),
  };
  for (const [name, pod] of Object.entries(nobody)) {
    test(`has no pod ${name}`, () => {
      const { reach } = given(bridge, [pod]) ?? {};
      assert.deepEqual(reach?.servers, []);
    });
  }
});
