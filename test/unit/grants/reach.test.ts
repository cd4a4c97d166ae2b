import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reach } from "../../../src/api/definition.ts";
import type { WorkloadSpec } from "../../../src/api/generated/workload.ts";
import { podReachText, reachOf, reachWithin, readPodReach } from "../../../src/grants/reach.ts";

const spec: WorkloadSpec = {
  components: [
    {
      name: "files",
      image: "file:files.wasm",
      localResources: {
        environment: { config: { A: "1" }, configFrom: [{ name: "settings" }], secretFrom: [{ name: "token" }, { name: "key" }] },
        allowedHosts: ["API.example.com", "api.example.com", "*.example.org:8443"],
        volumeMounts: [
          { name: "docs", mountPath: "/docs", readOnly: true },
          { name: "scratch", mountPath: "/tmp", readOnly: false },
        ],
      },
      limits: {} as never,
      reuse: {} as never,
    },
  ],
  volumes: [
    { name: "docs", persistentVolumeClaim: { claimName: "docs-claim" } },
    { name: "scratch", ephemeral: {} },
  ],
  replicas: 1,
  allowTags: false,
  draftGrants: true,
  suspend: false,
};

test("reach is sorted, canonical, names claims and secrets but no ConfigMaps, and leaves out imports that need no provider", () => {
  const instance = { kind: "instance", resources: [] } as const;
  const reach = reachOf(spec, "files", [
    { ...instance, id: "wasi:io/streams@0.2.6", functions: ["[method]input-stream.read"] },
    { ...instance, id: "example:github/types@0.1.0", functions: [] },
    { ...instance, id: "wasi:io/error@0.2.6", functions: [], resources: ["error"] },
    { ...instance, id: "log", kind: "function", functions: [] },
  ]);
  assert.deepEqual(reach, {
    hosts: ["*.example.org:8443", "api.example.com"],
    volumes: ["docs=docs-claim:/docs:ro", "scratch:/tmp:rw"],
    secrets: ["key", "token"],
    imports: ["log", "wasi:io/error@0.2.6", "wasi:io/streams@0.2.6"],
  });
});

test("a component that the workload does not have is an error with its code", () => {
  assert.throws(() => reachOf(spec, "nope", []), { code: "ComponentMissing" });
});

const reviewed: Reach = {
  hosts: ["*.example.com", "https://api.example.org"],
  volumes: ["docs=docs-claim:/docs:ro", "scratch:/tmp:rw"],
  secrets: ["token"],
  imports: ["wasi:http/types@0.2.6", "a:b/c@1.4.0"],
};

const cases: Record<string, { now: Partial<Reach>; wider: string[] }> = {
  "the same reach is within": { now: {}, wider: [] },
  "nothing is within": { now: { hosts: [], volumes: [], secrets: [], imports: [] }, wider: [] },
  "a host below a reviewed wildcard is within": { now: { hosts: ["a.b.example.com"] }, wider: [] },
  "the apex of a wildcard is wider": { now: { hosts: ["example.com"] }, wider: ["host example.com"] },
  "a host without its reviewed scheme is wider": { now: { hosts: ["api.example.org"] }, wider: ["host api.example.org"] },
  "another port is wider": { now: { hosts: ["https://api.example.org:8443"] }, wider: ["host https://api.example.org:8443"] },
  "an entry that cannot be read is wider": { now: { hosts: ["http://a/b"] }, wider: ["host http://a/b"] },
  "a volume that became read-only is within": { now: { volumes: ["scratch:/tmp:ro"] }, wider: [] },
  "a volume that became writable is wider": {
    now: { volumes: ["docs=docs-claim:/docs:rw"] },
    wider: ["volume docs=docs-claim:/docs:rw"],
  },
  "another claim behind the same volume is wider": {
    now: { volumes: ["docs=secrets-claim:/docs:ro"] },
    wider: ["volume docs=secrets-claim:/docs:ro"],
  },
  "a volume at another path is wider": { now: { volumes: ["scratch:/etc:rw"] }, wider: ["volume scratch:/etc:rw"] },
  "another secret is wider": { now: { secrets: ["token", "key"] }, wider: ["secret key"] },
  "a patch release of an import is within": { now: { imports: ["wasi:http/types@0.2.12", "a:b/c@1.9.9"] }, wider: [] },
  "a release that may break is wider": {
    now: { imports: ["wasi:http/types@0.3.0", "a:b/c@2.0.0"] },
    wider: ["import wasi:http/types@0.3.0", "import a:b/c@2.0.0"],
  },
  "another interface is wider": { now: { imports: ["wasi:sockets/tcp@0.2.6"] }, wider: ["import wasi:sockets/tcp@0.2.6"] },
};

for (const [sentence, { now, wider }] of Object.entries(cases)) {
  test(sentence, () => {
    const found = reachWithin({ ...reviewed, ...now }, reviewed).map(({ kind, entry }) => `${kind} ${entry}`);
    assert.deepEqual(found, wider);
  });
}

test("what a pod was made to touch is read back as it was written, without what its code imports", () => {
  const name = spec.components[0]?.name ?? "";
  assert.deepEqual(readPodReach(podReachText(spec, name)), { ...reachOf(spec, name, []), imports: [] });
});

for (const text of [
  "",
  "null",
  "[]",
  "{}",
  '{"hosts":[],"volumes":[]}',
  '{"hosts":[1],"volumes":[],"secrets":[]}',
  '{"hosts":[],"volumes":[],"secrets":{}}',
  '{"hosts":[[]]',
]) {
  test(`what a pod may touch is not read from ${JSON.stringify(text)}`, () => {
    assert.equal(readPodReach(text), null);
  });
}
