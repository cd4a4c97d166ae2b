import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { grantDigest } from "../../../src/grants/grant-digest.ts";
import { loadManifests, manifestFiles } from "../../../src/manifests/load.ts";
import { problemText } from "../../../src/manifests/problem.ts";
import { hostLimits } from "../../../src/manifests/quantities.ts";
import { readManifests } from "../../../src/manifests/read.ts";

const workload = (name: string, more = "") => `apiVersion: ambit.dev/v1alpha1
kind: Workload
metadata: {name: ${name}}
spec:
  components:
  - name: c
    image: file:c.wasm
${more}`;

const grant = (more = "") => `apiVersion: ambit.dev/v1alpha1
kind: ToolGrant
metadata: {name: g}
spec:
  tool: {workload: w, component: c, function: f}
  declaration: {name: f, description: d, parameters: {type: object}}
${more}`;

const read = (...texts: string[]) => readManifests(texts.map((text, i) => ({ path: `${i}.yaml`, text })));
const problemsOf = (...texts: string[]) => read(...texts).problems.map(problemText);

test("defaults are filled in and a namespace left out is default", () => {
  const [manifest] = read(workload("w")).objects;
  assert(manifest?.kind === "Workload");
  const { spec, metadata } = manifest.object;
  assert.equal(metadata.namespace, "default");
  assert.deepEqual([spec.allowTags, spec.draftGrants, spec.suspend], [false, true, false]);
  assert.deepEqual({ ...spec.components[0]?.limits }, { timeout: "30s", memory: "256Mi", resultBytes: "1Mi", concurrency: 4 });
  assert.deepEqual({ ...spec.components[0]?.reuse }, { calls: 1 });
});

test("a grant has the same digest with its defaults written out", () => {
  const digests = [grant(), grant("  mutates: true\n  egressCeiling: Internal\n  fields: []\n  subjects: null\n")].map((text) => {
    const [manifest] = read(text).objects;
    return manifest?.kind === "ToolGrant" ? grantDigest(manifest.object.spec) : null;
  });
  assert.notEqual(digests[0], null);
  assert.equal(digests[0], digests[1]);
});

test("a problem has its file, line, column and path, and says what to do", () => {
  assert.deepEqual(problemsOf(workload("w", "    Limits: {}\n    limits:\n      timeout: 5\n")), [
    '0.yaml:8:5: unknown field "Limits"; did you mean limits? (/spec/components/0/Limits) [UnknownField]',
    "0.yaml:10:7: must be a string, is the number 5 (/spec/components/0/limits/timeout) [WrongType]",
  ]);
});

test("an object with an error is left out and the others are not", () => {
  const { objects, problems } = read(`${workload("bad", "    x: 1\n")}---\n${workload("good")}---\n${grant()}`);
  assert.deepEqual(
    objects.map(({ kind, object, document, line }) => [kind, object.metadata.name, document, line]),
    [
      ["Workload", "good", 1, 10],
      ["ToolGrant", "g", 2, 18],
    ],
  );
  assert.equal(problems.length, 1);
});

test("one name twice is an error at the second place that names the first, whatever the file", () => {
  assert.deepEqual(problemsOf(workload("w"), workload("w")), [
    "1.yaml:3:12: Workload default/w is already written at 0.yaml:1 (/metadata/name) [DuplicateObject]",
  ]);
  assert.deepEqual(problemsOf(workload("w"), workload("w").replace("{name: w}", "{name: w, namespace: other}")), []);
});

test("a Namespace is read for its annotation, other kinds are left out with a notice", () => {
  const { objects, problems } = read(
    'apiVersion: v1\nkind: Namespace\nmetadata: {name: agents, annotations: {ambit.dev/accepts-grants-from: "team *"}}\nspec: {}\n',
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    "# nothing\n",
    "just: a file\n",
  );
  assert.deepEqual(
    objects.map(({ object }) => object.metadata.annotations?.["ambit.dev/accepts-grants-from"]),
    ["team *"],
  );
  assert.deepEqual(
    problems.map(({ code, severity }) => [code, severity]),
    [
      ["Ignored", "notice"],
      ["Ignored", "notice"],
    ],
  );
});

const wrong: Record<string, { text: string; code: string; path: string }> = {
  "another version of ours": { text: workload("w").replace("v1alpha1", "v9"), code: "UnknownVersion", path: "/apiVersion" },
  "a kind that we have not": { text: workload("w").replace("Workload", "Workloads"), code: "UnknownKind", path: "/kind" },
  "a Workload without a version": { text: "kind: Workload\n", code: "NotAnObject", path: "" },
  "a list": { text: "- a\n", code: "NotAnObject", path: "" },
  "no name": { text: workload("w").replace("{name: w}", "{}"), code: "MissingField", path: "/metadata" },
  "a name in capitals": { text: workload("W"), code: "PatternMismatch", path: "/metadata/name" },
  "an annotation that is a number": {
    text: workload("w").replace("{name: w}", "{name: w, annotations: {a: 1}}"),
    code: "WrongType",
    path: "/metadata/annotations/a",
  },
  "an allowed host with a path": {
    text: workload("w", "    localResources: {allowedHosts: [a.example, http://b.example/x]}\n"),
    code: "AllowedHostInvalid",
    path: "/spec/components/0/localResources/allowedHosts/1",
  },
};

for (const [sentence, { text, code, path }] of Object.entries(wrong)) {
  test(`a manifest is refused for ${sentence}`, () => {
    const { objects, problems } = read(text);
    assert.deepEqual([problems[0]?.code, problems[0]?.path, objects.length], [code, path, 0]);
  });
}

test("a schema that cannot judge arguments is a problem at its place", () => {
  const assertUsableSchema = () => {
    throw new Invalid("SchemaUnusable", "no", "/type");
  };
  const [problem] = readManifests([{ path: "g.yaml", text: grant() }], { assertUsableSchema }).problems;
  assert.deepEqual([problem?.code, problem?.path, problem?.line], ["SchemaUnusable", "/spec/declaration/parameters/type", 6]);
});

test("limits are read in the host's units", () => {
  assert.deepEqual(hostLimits({ timeout: "2m", memory: "1Gi", resultBytes: "512", concurrency: 2 }), {
    timeoutMs: 120_000,
    memoryBytes: 1024 ** 3,
    resultBytes: 512,
    concurrency: 2,
  });
  assert.throws(() => hostLimits({ timeout: "2h", memory: "1Gi", resultBytes: "512", concurrency: 2 }), { code: "LimitInvalid" });
});

test("a folder is read with its folders, without links, hidden files and large ones", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-manifests-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "b", "node_modules"), { recursive: true });
  await writeFile(join(folder, "z.yaml"), workload("z"));
  await writeFile(join(folder, "b", "a.yml"), workload("a"));
  await writeFile(join(folder, "b", "node_modules", "n.yaml"), workload("n"));
  await writeFile(join(folder, ".hidden.yaml"), workload("h"));
  await writeFile(join(folder, "README.md"), "x");
  await symlink("/etc/hosts", join(folder, "link.yaml"));
  const { objects, problems } = await loadManifests(folder);
  assert.deepEqual(
    objects.map(({ object }) => object.metadata.name),
    ["a", "z"],
  );
  assert.deepEqual(problems, []);

  await assert.rejects(manifestFiles(join(folder, "nope")), { code: "NoSuchFolder" });
  await assert.rejects(manifestFiles(folder, { maxFiles: 1, maxDepth: 6, maxBytes: 1000 }), { code: "TooManyFiles" });
  await assert.rejects(manifestFiles(folder, { maxFiles: 10, maxDepth: 6, maxBytes: 10 }), { code: "FileTooLarge" });
});
