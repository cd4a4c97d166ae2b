import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonObject } from "../../../src/api/json.ts";
import { providerFormats } from "../../../src/declaration/formats.ts";
import { looseCopy } from "../../../src/declaration/loose-copy.ts";
import { strictCopy } from "../../../src/declaration/strict-copy.ts";
import { compileSchema } from "../../../src/translate/schema-judge.ts";
import { reviewedSchemas, values } from "./schemas.ts";

const usable = (schema: JsonObject): Judge | null => {
  try {
    return compileSchema(schema);
  } catch (thrown) {
    if (thrown instanceof Invalid && thrown.code === "SchemaUnusable") return null;
    throw thrown;
  }
};

type Judge = ReturnType<typeof compileSchema>;

/** ajv writes code for a few odd schemas that can't run; a call is refused then. */
const admits = (judge: Judge, value: JsonObject): boolean => {
  try {
    return judge(value) === null;
  } catch (thrown) {
    if (thrown instanceof ReferenceError) return false;
    throw thrown;
  }
};

describe("a provider's copy admits whatever the reviewed schema admits:", () => {
  const objects = fc.dictionary(fc.constantFrom("a", "b", "c"), values, { maxKeys: 3 });
  for (const provider of providerFormats) {
    it(provider, () => {
      let admitted = 0;
      fc.assert(
        fc.property(reviewedSchemas, fc.array(objects, { minLength: 20, maxLength: 20 }), (schema, given) => {
          const judge = usable(schema);
          fc.pre(judge !== null);
          const fitting = given.filter((value) => admits(judge, value));
          if (fitting.length === 0) return;
          admitted++;
          for (const copy of [looseCopy(schema, provider), strictCopy(schema, provider)?.schema]) {
            if (!copy) continue;
            const judgeCopy = compileSchema(copy);
            for (const value of fitting) assert.ok(admits(judgeCopy, value), compactJson(value));
          }
        }),
        { numRuns: 150 },
      );
      assert.ok(admitted > 50, `only ${admitted} schemas admitted any of the values`);
    });
  }
});
