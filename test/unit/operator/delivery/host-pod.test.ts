import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import { hostCertificateLifetimeMs } from "../../../../src/identity/host-identity.ts";
import { type Delivered, isSettled, type Wanted } from "../../../../src/operator/delivery/deliver.ts";
import { type HostPod, hostPodOf, isSamePlace, noteAnnotations } from "../../../../src/operator/delivery/host-pod.ts";
import type { Pod } from "../../../../src/operator/kinds.ts";

const running = { name: "host", containerID: "containerd://1", state: { running: {} } };
const note = { boot: "b", component: sha256Of("component"), certificate: "PEM" };
const pod: Pod = {
  metadata: {
    name: "github-main-1-a",
    namespace: "agents",
    uid: "u",
    labels: { "ambit.dev/workload": "github", "ambit.dev/component": "main", "ambit.dev/digest": "0123456789abcdef" },
    annotations: noteAnnotations(note),
  },
  status: { phase: "Running", podIP: "10.244.0.7", containerStatuses: [{ name: "sidecar", containerID: "x" }, running] },
};
const host: HostPod = {
  key: { namespace: "agents", name: "github-main-1-a" },
  uid: "u",
  of: { namespace: "agents", workload: "github", component: "main" },
  shortDigest: "0123456789abcdef",
  address: "10.244.0.7",
  containerId: "containerd://1",
  hop: null,
  noted: note,
};

describe("a pod to deliver to", () => {
  it("is known by what it runs, where, and what it has", () => {
    assert.deepEqual(hostPodOf(pod), host);
  });

  const meta = (change: object): Pod => ({ ...pod, metadata: { ...pod.metadata, ...change } });
  const status = (change: object): Pod => ({ ...pod, status: { ...pod.status, ...change } });
  const none: Record<string, Pod> = {
    "is being deleted": meta({ deletionTimestamp: "2026-01-01T00:00:00Z" }),
    "has no address yet": status({ podIP: "" }),
    "has not begun": status({ phase: "Pending" }),
    "has ended, and may have lost its address": status({ phase: "Failed" }),
    "shares the node's address with others": { ...pod, spec: { hostNetwork: true } },
    "has no host": status({ containerStatuses: [{ name: "sidecar", containerID: "x", state: { running: {} } }] }),
    "has a host that does not run": status({ containerStatuses: [{ ...running, state: {} }] }),
    "says nothing of its containers": status({ containerStatuses: undefined }),
    "has not our labels": meta({ labels: {} }),
  };
  for (const [name, given] of Object.entries(none)) {
    it(`is none that ${name}`, () => {
      assert.equal(hostPodOf(given), undefined);
    });
  }

  it("is the end of a hop that it was started as, and no other", () => {
    const ends = ["server", "bridge", "both"].map((hop) => hostPodOf(meta({ annotations: { "ambit.dev/hop": hop } }))?.hop);
    assert.deepEqual(ends, ["server", "bridge", null]);
  });

  it("was delivered to only if all of its notes are there", () => {
    for (const missing of Object.keys(noteAnnotations(note))) {
      const { [missing]: _, ...annotations } = noteAnnotations(note);
      assert.equal(hostPodOf(meta({ annotations }))?.noted, undefined, missing);
    }
  });

  const elsewhere: Record<string, Partial<HostPod> | undefined> = {
    "is gone": undefined,
    "was made anew": { uid: "v" },
    "has another address": { address: "10.244.0.8" },
    "restarted its container": { containerId: "containerd://2" },
  };
  for (const [name, change] of Object.entries(elsewhere)) {
    it(`is not where it was if it ${name}`, () => {
      assert.equal(isSamePlace(host, change && { ...host, ...change }), false);
    });
  }
});

describe("a delivery", () => {
  const now = Date.UTC(2026, 0, 1);
  const wanted: Wanted = { keys: [{ kid: "k1", publicKey: "", notAfter: 0 }], table: { "a:443": ["192.0.2.1"] } };
  const before: Delivered = {
    ...note,
    containerId: "containerd://1",
    certificateEnds: now + hostCertificateLifetimeMs,
    keys: "k1",
    table: '{"a:443":["192.0.2.1"]}',
    hop: null,
    hasComponent: true,
  };

  it("is settled when nothing differs, whatever the order of a table's keys, and while its table is looked up anew", () => {
    assert.ok(isSettled(host, before, wanted, now));
    assert.ok(isSettled(host, before, { ...wanted, table: undefined }, now));
  });

  const due: Record<string, { pod?: Partial<HostPod>; before?: Partial<Delivered> | null; wanted?: Partial<Wanted>; at?: number }> = {
    "nothing is known of one": { before: null },
    "the component is still to come": { before: { hasComponent: false } },
    "the container restarted": { pod: { containerId: "containerd://2" } },
    "the pod does not say so": { pod: { noted: undefined } },
    "the pod says something else": { pod: { noted: { ...note, certificate: "another" } } },
    "the certificate is half through its life": { at: now + hostCertificateLifetimeMs / 2 },
    "there is a new ticket key": { wanted: { keys: [...wanted.keys, { kid: "k2", publicKey: "", notAfter: 0 }] } },
    "the table is another": { wanted: { table: { "a:443": ["192.0.2.2"] } } },
    "the table is empty now": { wanted: { table: {} } },
    "its hop is another": { wanted: { hop: { accept: ["a", "b"] } } },
  };
  for (const [name, change] of Object.entries(due)) {
    it(`is due when ${name}`, () => {
      const known = change.before === null ? undefined : { ...before, ...change.before };
      assert.equal(isSettled({ ...host, ...change.pod }, known, { ...wanted, ...change.wanted }, change.at ?? now), false);
    });
  }
});
