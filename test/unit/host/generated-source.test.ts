import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { coreModuleNames, guardGeneratedSource, instantiationCounts } from "../../../src/host/generated-source.ts";
import { jcoVersion } from "../../../src/host/transpile.ts";

const head =
  "export function instantiate(getCoreModule, imports, instantiateCore = (module, importObject) => new WebAssembly.Instance(module, importObject)) {\n";
const tracing = "const _debugLog = (...args) => {\n if (!globalThis?.process?.env?.JCO_DEBUG) { return; }\n console.debug(...args);\n};\n";

const refused = (error: unknown) => error instanceof Invalid && error.code === "ComponentUnsupported";

describe("guarding generated code", () => {
  it("charges loops over lists and copies of memory", () => {
    const guarded = guardGeneratedSource(
      `${head}${tracing}for (let i = 0; i < len5; i++) {}\nfor (var i = 0; i < len; i++) {}\nnew Uint8Array(memory0.buffer.slice(ptr1, ptr1 + len1));}`,
    );
    assert.ok(guarded.includes("for (let i = ambit.elements(len5); i < len5; i++) {"));
    assert.ok(guarded.includes("for (var i = ambit.elements(len); i < len; i++) {"));
    assert.ok(guarded.includes("new Uint8Array(ambit.slice(memory0.buffer, ptr1, ptr1 + len1))"));
  });

  it("makes no arguments for tracing", () => {
    const guarded = guardGeneratedSource(`${head}${tracing}_debugLog('x', { costly: work() });}`);
    assert.ok(guarded.includes("false && console.log('x', { costly: work() })"));
    assert.ok(!guarded.includes("JCO_DEBUG"));
  });

  const strange: Record<string, string> = {
    "a signature of another form": `export function instantiate(a, b) {${tracing}}`,
    "tracing of another form": `${head}}`,
    "a copy that was missed": `${head}${tracing}other.buffer.slice(0, 1)}`,
    "a loop that was missed": `${head}${tracing}for (let i = 0; i < lengthy; i++) {}}`,
  };
  for (const [name, source] of Object.entries(strange)) {
    it(`refuses code with ${name}, as a newer jco may write`, () => assert.throws(() => guardGeneratedSource(source), refused));
  }

  it("knows how often each core module is instantiated", () => {
    const source =
      "const module0 = getCoreModule('c.core.wasm');\nconst module1 = getCoreModule('c.core2.wasm');\ninstantiateCore(module1); instantiateCore(module1, {});";
    assert.deepEqual(coreModuleNames(source), ["c.core.wasm", "c.core2.wasm"]);
    assert.deepEqual([...instantiationCounts(source)], [[1, 2]]);
  });

  it("is for the version of jco that is installed", () => {
    const entry = createRequire(import.meta.url).resolve("@bytecodealliance/jco-transpile/component");
    const manifest = JSON.parse(readFileSync(new URL("../package.json", `file://${entry}`), "utf8"));
    assert.equal(manifest.version, jcoVersion);
  });
});
