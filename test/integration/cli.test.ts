import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ambit } from "../support/ambit-command.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const components = join(root, "test/fixtures/components");

describe("the commands", () => {
  let place: string;
  before(async () => {
    place = await mkdtemp(join(tmpdir(), "ambit-cli-"));
  });
  after(() => rm(place, { recursive: true, force: true }));

  test("inspect gives the documentation's GitHub tool exactly, whichever toolchain built it", async () => {
    for (const file of ["mission.wasm", "mission-qjs.wasm"]) {
      const target = join(place, file);
      await ambit(["docs", "embed", join(components, file), "--wit", join(components, "mission/wit"), "--out", target]);
      const { code, out } = await ambit(["inspect", target, "--json"]);
      assert.equal(code, 0);
      const { functions } = JSON.parse(out);
      assert.equal(functions.length, 1);
      const [{ name, description, parameters, docsFound }] = functions;
      assert.equal(docsFound, true);
      assert.equal(name, "list_issues");
      assert.equal(description, "List the issues in a repository.");
      assert.equal(
        JSON.stringify(parameters),
        '{"type":"object","properties":{"repo":{"type":"string","description":"The repository, as owner/name."},"state":{"type":"string","enum":["open","closed"],"description":"Which issues to list."}},"required":["repo","state"],"additionalProperties":false}',
      );
    }
  });

  test("inspect tells what a component imports, and what it doesn't offer and why", async () => {
    const { code, out } = await ambit(["inspect", join(components, "unoffered.wasm"), "--json"]);
    assert.equal(code, 0);
    const { notOffered, imports, functions } = JSON.parse(out);
    assert.ok(Array.isArray(imports) && Array.isArray(functions));
    assert.ok(notOffered.length > 0);
    for (const one of notOffered) assert.ok(one.function && one.reason, JSON.stringify(one));
  });

  const unreadable: Record<string, { content: Uint8Array | string | null; message: RegExp }> = {
    "a file that isn't there": { content: null, message: /FileUnreadable/ },
    "a text": { content: "hello", message: /NotWasm/ },
    "an empty file": { content: "", message: /NotWasm/ },
    "a core module": { content: Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), message: /CoreModule/ },
    "a component with a section of 2 GB": {
      content: Uint8Array.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0, 7, 0xff, 0xff, 0xff, 0xff, 0x07]),
      message: /ComponentMalformed/,
    },
  };
  for (const [what, { content, message }] of Object.entries(unreadable)) {
    test(`${what} is refused with its reason and exit code 2`, async () => {
      const file = join(place, "input.wasm");
      await rm(file, { force: true });
      if (content !== null) await writeFile(file, content);
      const { code, out, err } = await ambit(["inspect", file, "--json"]);
      assert.equal(code, 2);
      assert.equal(out, "");
      assert.match(err, message);
      assert.doesNotMatch(err, /\n\s+at /, "no stack");
    });
  }

  test("docs embed replaces what was embedded before, and leaves the functions as they are", async () => {
    const target = join(place, "twice.wasm");
    await cp(join(components, "mission.wasm"), target);
    for (let time = 0; time < 2; time++) {
      const { code } = await ambit(["docs", "embed", target, "--wit", join(components, "mission/wit")]);
      assert.equal(code, 0);
    }
    const once = join(place, "once.wasm");
    await ambit(["docs", "embed", join(components, "mission.wasm"), "--wit", join(components, "mission/wit"), "--out", once]);
    assert.deepEqual(await readFile(target), await readFile(once));
  });

  test("the examples and the demo hold: manifests, reviews and every provider's rules", async () => {
    for (const folder of ["examples", "demo/manifests"]) {
      const volume = `notices=${join(root, "examples/notices/notices")}`;
      const { code, out } = await ambit(["check", join(root, folder), "--volume", volume, "--cache", join(place, "cache")]);
      assert.equal(code, 0, out);
      assert.match(out, / 0 errors, 0 notices\n$/);
    }
  });

  test("check names file, line and column, and exits 1", async () => {
    await writeFile(
      join(place, "bad.yaml"),
      "apiVersion: ambit.dev/v1alpha1\nkind: Workload\nmetadata: {name: a}\nspec:\n  components: 1\n",
    );
    const { code, out } = await ambit(["check", join(place, "bad.yaml"), "--json"]);
    assert.equal(code, 1);
    const { findings } = JSON.parse(out);
    assert.match(findings[0].where, /bad\.yaml:5:\d+$/);
    await rm(join(place, "bad.yaml"));
  });

  test("check names the providers that would refuse a declaration, and asks only those that matter", async () => {
    const folder = join(place, "providers");
    await cp(join(root, "examples/github"), folder, { recursive: true });
    await writeFile(
      join(folder, "grants.yaml"),
      JSON.stringify({
        apiVersion: "ambit.dev/v1alpha1",
        kind: "ToolGrant",
        metadata: { name: "draft" },
        spec: {
          tool: { workload: "github", component: "github", interface: "ambit:github/repositories@0.1.0", function: "list-issues" },
          declaration: {
            name: "list_issues",
            description: "List issues.",
            parameters: { type: "object", properties: { repo: { type: "string" }, "page-size": { type: "integer" }, $top: {} } },
          },
        },
      }),
    );
    const refusals = async (...providers: string[]) => {
      const { code, out } = await ambit(["check", folder, "--json", ...providers.flatMap((one) => ["--provider", one])]);
      const { findings } = JSON.parse(out);
      return [
        code,
        ...findings
          .filter((one: { code: string }) => one.code === "ProviderRefuses")
          .map((one: { message: string }) => one.message.split(":")[0]),
      ];
    };
    assert.deepEqual(await refusals(), [1, "anthropic, gemini, bedrock would refuse list_issues", "gemini would refuse list_issues"]);
    assert.deepEqual(await refusals("openai-chat", "mcp"), [0]);
    assert.deepEqual(await refusals("bedrock"), [1, "bedrock would refuse list_issues"]);
    assert.equal((await ambit(["check", folder, "--provider", "neutral"])).code, 2);
  });

  test("every command has help, and a wrong one says where help is", async () => {
    const { code, out } = await ambit(["--help"]);
    assert.equal(code, 0);
    for (const command of ["up", "inspect", "draft", "review", "approve", "diff", "check", "call", "declarations", "docs", "completion"]) {
      assert.match(out, new RegExp(`^  ${command}\\b`, "m"));
    }
    const wrong = await ambit(["aprove"]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /Did you mean approve/);
  });

  test("completion scripts are scripts that complete commands and options", async () => {
    const { out } = await ambit(["completion", "bash"]);
    const file = join(place, "completion.bash");
    await writeFile(
      file,
      `${out}\nCOMP_WORDS=(ambit ap); COMP_CWORD=1; _ambit; echo "\${COMPREPLY[*]}"\nCOMP_WORDS=(ambit docs embed --w); COMP_CWORD=3; _ambit; echo "\${COMPREPLY[*]}"\n`,
    );
    const { spawnSync } = await import("node:child_process");
    const { stdout, stderr } = spawnSync("bash", [file], { encoding: "utf8", cwd: place });
    assert.equal(stderr, "");
    assert.equal(stdout, "approve\n--wit\n");
  });

  test("a catalogue that doesn't answer is exit code 3", async () => {
    const { code, err } = await ambit(["call", "x", "{}", "--url", "http://127.0.0.1:9", "--token", "t"]);
    assert.equal(code, 3);
    assert.match(err, /CatalogueUnreachable/);
  });

  test("arguments that are no JSON are told with their place, before anybody is asked", async () => {
    const { code, err } = await ambit(["call", "x", '{"a":1,"a":2}', "--url", "http://127.0.0.1:9"]);
    assert.equal(code, 2);
    assert.match(err, /JsonDuplicateKey/);
  });
});
