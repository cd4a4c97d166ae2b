import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ambit } from "../../support/ambit-command.ts";
import { type ServedFolder, serveFolder, workload } from "./served-folder.ts";

interface Problem {
  readonly file: string;
  readonly line: number;
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

const other = workload("other", "tool.wasm");

const wrong: Record<string, { text: string; code: string; path: string; line: number; says: RegExp }> = {
  "an unknown field": {
    text: `${other}    colour: red\n`,
    code: "UnknownField",
    path: "/spec/components/0/colour",
    line: 9,
    says: /unknown field "colour"/,
  },
  "a wrong type": {
    text: other.replace("timeout: 5s", "timeout: 5"),
    code: "WrongType",
    path: "/spec/components/0/limits/timeout",
    line: 8,
    says: /must be a string/,
  },
  "a name that another has": {
    text: `${other}---\n${other}`,
    code: "DuplicateObject",
    path: "/metadata/name",
    line: 12,
    says: /agents\/other is already written at .*wrong\.yaml:1/,
  },
  "a component's name twice": {
    text: `${other}  - name: other\n    image: file:tool.wasm\n`,
    code: "DuplicateEntry",
    path: "/spec/components/1",
    line: 9,
    says: /other/,
  },
  "a tag instead of a digest": {
    text: other.replace("file:tool.wasm", "ghcr.io/example/tools/tool:latest"),
    code: "RuleBroken",
    path: "/spec",
    line: 4,
    says: /digest/,
  },
  "a key twice": { text: `${other}spec: {}\n`, code: "YamlDuplicateKey", path: "/spec", line: 9, says: /spec/ },
};

describe("manifests that are none, beside those that are served", () => {
  let served: ServedFolder;
  before(async () => {
    served = await serveFolder("mission", () => true);
  });
  after(() => served?.close());

  const stillServed = async () => assert.equal((await served.call("list_issues", { repo: "octo/spoon", state: "open" })).outcome, "ok");

  for (const [what, { text, code, path, line, says }] of Object.entries(wrong)) {
    test(`${what}: ${code}, told by up and by check with file, line and path; the rest is served`, async () => {
      const file = join(served.folder, "wrong.yaml");
      const since = served.up.events.length;
      await writeFile(file, text);
      const event = await served.up.waitFor(({ event: kind, problems }) => kind === "settled" && (problems as Problem[]).length > 0, since);
      const found = (event.problems as Problem[]).filter((problem) => problem.code === code);
      assert.deepEqual(
        found.map((problem) => [problem.file, problem.path, problem.line]),
        [[file, path, line]],
        JSON.stringify(event.problems),
      );
      assert.match(found[0]?.message ?? "", says);
      await stillServed();
      const checked = await ambit(["check", file, "--json"]);
      assert.equal(checked.code, 1);
      assert.match(checked.out, new RegExp(`wrong\\.yaml:${line}:`));
      const mended = served.up.events.length;
      await rm(file);
      await served.up.waitFor(({ event: kind, problems }) => kind === "settled" && (problems as Problem[]).length === 0, mended);
    });
  }

  test("a tool is served from one process throughout", () => {
    const ready = served.up.events.filter(({ event, key }) => event === "host-ready" && (key as { workload: string }).workload === "tool");
    assert.equal(ready.length, 1);
  });
});
