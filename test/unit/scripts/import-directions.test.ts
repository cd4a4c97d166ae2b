import assert from "node:assert/strict";
import { test } from "node:test";
import { misdirections } from "../../../scripts/import-directions.ts";

const cases: Record<string, { path: string; text: string; wrong: RegExp | null }> = {
  "a folder imports itself": { path: "src/wit/decode.ts", text: 'import { a } from "./limits.ts";', wrong: null },
  "a subfolder imports its folder": { path: "src/host/wasi/http/fields.ts", text: 'import { a } from "../../failure.ts";', wrong: null },
  "a layer imports one below": { path: "src/local/observe.ts", text: 'import { a } from "../wit/decode.ts";', wrong: null },
  "a layer imports one above": {
    path: "src/grants/judge.ts",
    text: 'import { a } from "../catalogue/state.ts";',
    wrong: /^src\/grants may import only .*, not src\/catalogue/,
  },
  "a type is an import": {
    path: "src/api/wit.ts",
    text: 'import type { A } from "../wit/a.ts";',
    wrong: /none of our other folders, not src\/wit/,
  },
  "an import over several lines": { path: "src/api/wit.ts", text: 'import {\n  a,\n} from "../wit/a.ts";', wrong: /not src\/wit/ },
  "a re-export is an import": { path: "src/oci/pull.ts", text: 'export * from "../host/main.ts";', wrong: /not src\/host/ },
  "an import at run time is an import": {
    path: "src/catalogue/a.ts",
    text: 'const b = await import("../cli/b.ts");',
    wrong: /not src\/cli/,
  },
  "a pure folder reads no files": {
    path: "src/egress/a.ts",
    text: 'import { readFile } from "node:fs/promises";',
    wrong: /pure .* not node:fs/,
  },
  "a pure folder uses no HTTP client": { path: "src/grants/a.ts", text: 'import { fetch } from "undici";', wrong: /pure .* not undici/ },
  "a pure folder may compute": { path: "src/translate/a.ts", text: 'import { Ajv2020 } from "ajv/dist/2020.js";', wrong: null },
  "the word import in a string is none": { path: "src/wit/a.ts", text: 'f("import", name("../cli/a.ts"));', wrong: null },
  "an edge may do both": { path: "src/oci/a.ts", text: 'import { request } from "undici";', wrong: null },
  "source does not import tests": { path: "src/oci/a.ts", text: 'import { a } from "../../test/registry/serve.ts";', wrong: /not in src/ },
  "a new folder has to say what it may import": {
    path: "src/bridge/a.ts",
    text: 'import { a } from "../api/wit.ts";',
    wrong: /src\/bridge has no entry/,
  },
};

for (const [sentence, { path, text, wrong }] of Object.entries(cases)) {
  test(sentence, () => {
    const found = misdirections([{ path, text }]);
    if (wrong === null) assert.deepEqual(found, []);
    else {
      assert.equal(found.length, 1);
      assert.match(found[0]?.message ?? "", wrong);
    }
  });
}

test("a misdirected import is reported with its line", () => {
  const text = 'import { a } from "./a.ts";\n\nimport { b } from "../cli/b.ts";\n';
  assert.deepEqual(
    misdirections([{ path: "src/host/c.ts", text }]).map(({ path, line }) => `${path}:${line}`),
    ["src/host/c.ts:3"],
  );
});
