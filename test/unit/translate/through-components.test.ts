import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import fc from "fast-check";
import { canonicalJson, compactJson, type JsonObject, type JsonValue, parseJson } from "../../../src/api/json.ts";
import type { WitFunction } from "../../../src/api/wit.ts";
import { outputSchema, parametersSchema } from "../../../src/declaration/schema.ts";
import { argumentFields } from "../../../src/declaration/shape.ts";
import { checkArguments, normaliseArguments } from "../../../src/translate/arguments.ts";
import { resultOf, type ToolResult } from "../../../src/translate/result.ts";
import { compileSchema } from "../../../src/translate/schema-judge.ts";
import { toComponentValues } from "../../../src/translate/to-component.ts";
import { type RunningComponent, runComponent } from "./running-component.ts";
import { objectsOf } from "./values.ts";

const fixtures = new URL("../../fixtures/components/", import.meta.url);
const maxBytes = 1024 * 1024;

const callWith = async (component: RunningComponent, fn: WitFunction, given: JsonObject): Promise<ToolResult> =>
  resultOf(fn, await component.call(fn, toComponentValues(fn, given)), maxBytes);

/** What the echo functions should answer, in JSON: their only argument, or what the function's comment says. */
const echoed = (fn: WitFunction, given: JsonObject): JsonValue | undefined => {
  const [only, ...others] = fn.params;
  if (!only) return undefined;
  if (only.type.kind === "record" && others.length === 0) return given;
  const values = fn.params.map(({ name, type }) => given[name] ?? (type.kind === "option" ? null : undefined));
  return others.length > 0 ? (values as JsonValue) : values[0];
};

describe("values through real components", () => {
  const components: RunningComponent[] = [];
  before(async () => {
    components.push(await runComponent(new URL("echo.wasm", fixtures)), await runComponent(new URL("collections.wasm", fixtures)));
  });

  it("come back as they were given, sync and async, and fit the schemas both ways", async () => {
    let functions = 0;
    for (const component of components) {
      for (const fn of component.decoded.functions.filter(({ name }) => name.startsWith("echo-"))) {
        functions++;
        const judgeArguments = compileSchema(parametersSchema(fn));
        const output = outputSchema(fn);
        const judgeResult = output && compileSchema(output);
        await fc.assert(
          fc.asyncProperty(objectsOf(argumentFields(fn)), async (given) => {
            const where = `${fn.interface}#${fn.name} ${compactJson(given)}`;
            const sent = parseJson(canonicalJson(normaliseArguments(fn, given))) as JsonObject;
            assert.equal(judgeArguments(sent), null, where);
            checkArguments(fn, sent);
            const result = await callWith(component, fn, sent);
            assert.equal(result.outcome, "ok", where);
            assert.ok("structured" in result && result.structured && judgeResult);
            assert.equal(judgeResult(result.structured), null, where);
            const value = "result" in result.structured && !("result" in sent) ? result.structured.result : result.structured;
            assert.equal(canonicalJson(inKeyOrder(fn, value)), canonicalJson(inKeyOrder(fn, expected(fn, given))), where);
          }),
          { numRuns: 12 },
        );
      }
    }
    assert.ok(functions > 90, `only ${functions} functions were called`);
  });
});

const expected = (fn: WitFunction, given: JsonObject): JsonValue | undefined => {
  const value = echoed(fn, given);
  // `echo-result` wraps its value, so that the outermost result isn't taken for the call's outcome.
  return fn.name.startsWith("echo-result") && fn.name !== "echo-result-list" ? [value ?? null] : value;
};

/** A component may give a map's entries in any order. */
const inKeyOrder = (fn: WitFunction, value: JsonValue | undefined): JsonValue =>
  fn.name === "echo-map-of-numbers" && Array.isArray(value) ? value.map((entry) => canonicalJson(entry)).sort() : (value ?? null);
