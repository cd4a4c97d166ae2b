import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { interfaceOf, type OracleWit } from "./oracle.ts";

const fixtures = new URL("../../fixtures/wit/", import.meta.url);
const golden = new URL("../../golden/wit/", import.meta.url);

// Each golden file is what `wasm-tools component wit --json --all-features` printed for the component (test/fixtures/wit/README.md).
const components: Record<string, string> = {
  "rust-echo": "wit-bindgen, every type, sync and async",
  "rust-collections": "wit-bindgen, maps and fixed-length lists",
  quickjs: "componentize-qjs",
  "starling-monkey": "componentize-js",
  python: "componentize-py",
  wide: "wasm-tools component new: packages, versions, resources, world items, use and include",
  composed: "wasm-tools compose: nested components",
};

for (const [name, origin] of Object.entries(components)) {
  test(`a component of ${origin} is read as wasm-tools reads it`, () => {
    const component = decodeComponent(readFileSync(new URL(`${name}.wasm`, fixtures)));
    const oracle = interfaceOf(JSON.parse(readFileSync(new URL(`${name}.json`, golden), "utf8")) as OracleWit);

    assert.deepEqual(component.functions, oracle.functions);
    assert.deepEqual(component.imports, oracle.imports);
    assert.deepEqual(
      component.exports.map((one) => one.id),
      oracle.exports,
    );
  });
}
