import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { GivenSource } from "../../../src/grants/sandboxed-component.ts";
import type { Pod } from "../../../src/operator/kinds.ts";
import { isNotStarted, missingIn } from "../../../src/operator/workload/not-started.ts";

const sources: readonly GivenSource[] = [
  { kind: "ConfigMap", name: "settings", as: "environment" },
  { kind: "Secret", name: "token", as: "environment" },
  { kind: "Secret", name: "login", as: "headers" },
];

const failed = (note: string) => ({ metadata: { name: "e" }, reason: "FailedMount", note });

describe("what kubelet says of pods that do not start", () => {
  const cases: Record<string, { said: Parameters<typeof missingIn>[0]; reason: string | undefined; words?: RegExp }> = {
    "names a secret": {
      said: [failed('MountVolume.SetUp failed for volume "secret-token" : secret "token" not found')],
      reason: "SecretMissing",
      words: /there is no Secret agents\/token: make it, or take it out of secretFrom/,
    },
    "names a ConfigMap": {
      said: [failed('MountVolume.SetUp failed for volume "configmap-settings" : configmap "settings" not found')],
      reason: "ConfigMapMissing",
      words: /ConfigMap agents\/settings.*configFrom/,
    },
    "names a secret of headers": {
      said: [failed('MountVolume.SetUp failed for volume "secret-login" : secret "login" not found')],
      reason: "SecretMissing",
      words: /Secret agents\/login.*headersFrom/,
    },
    "names a secret that is none of its own": { said: [failed('secret "other" not found')], reason: undefined },
    "is of something else": { said: [failed("Unable to attach or mount volumes: timed out")], reason: undefined },
    "is said by an event of another reason": {
      said: [{ metadata: { name: "e" }, reason: "Failed", note: 'secret "token" not found' }],
      reason: undefined,
    },
    "is nothing": { said: [], reason: undefined },
  };
  for (const [sentence, { said, reason, words = /./ }] of Object.entries(cases)) {
    test(sentence, () => {
      const found = missingIn(said, sources, "agents");
      assert.equal(found?.reason, reason);
      if (found) assert.match(found.message, words);
    });
  }
});

describe("a pod", () => {
  const pod = (status: Pod["status"], deletionTimestamp?: string): Pod => ({
    metadata: { name: "p", ...(deletionTimestamp ? { deletionTimestamp } : {}) },
    ...(status ? { status } : {}),
  });
  const waiting = [{ name: "host", state: { waiting: { reason: "ContainerCreating" } } }];
  const cases: Record<string, { of: Pod; expected: boolean }> = {
    "whose container waits has not started": { of: pod({ phase: "Pending", containerStatuses: waiting }), expected: true },
    "that no node has taken is not kubelet's yet": { of: pod({ phase: "Pending" }), expected: false },
    "whose container is tried anew has started": { of: pod({ phase: "Running", containerStatuses: waiting }), expected: false },
    "that goes is asked about no more": {
      of: pod({ phase: "Pending", containerStatuses: waiting }, "2026-01-01T00:00:00Z"),
      expected: false,
    },
  };
  for (const [sentence, { of, expected }] of Object.entries(cases)) test(sentence, () => assert.equal(isNotStarted(of), expected));
});
