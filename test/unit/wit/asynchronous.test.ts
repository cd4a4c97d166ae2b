import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { decodeComponent } from "../../../src/wit/decode.ts";

const read = (file: string) => decodeComponent(readFileSync(new URL(`../../fixtures/components/${file}`, import.meta.url)));

describe("a component is known to be asynchronous", () => {
  const cases: Record<string, { file: string; is: boolean }> = {
    "where an exported function is lifted asynchronously": { file: "mission.wasm", is: true },
    "where some functions are and others are not": { file: "echo.wasm", is: true },
    "where it uses streams and futures": { file: "unoffered.wasm", is: true },
    "and not where everything in it is synchronous": { file: "almanac.wasm", is: false },
    "and not for what it imports of WASI 0.2": { file: "intruder.wasm", is: false },
  };
  for (const [what, { file, is }] of Object.entries(cases)) {
    it(what, () => assert.equal(read(file).isAsynchronous, is));
  }
});
