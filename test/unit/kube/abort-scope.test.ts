import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import { abortScope } from "../../../src/kube/abort-scope.ts";

describe("an abort scope", () => {
  test("ends with the outer signal, for its reason", () => {
    const outer = new AbortController();
    const { signal } = abortScope(outer.signal);
    assert.equal(signal.aborted, false);
    outer.abort("why");
    assert.equal(signal.reason, "why");
    assert.equal(abortScope(outer.signal).signal.reason, "why", "also when it ended before");
  });

  test("ends by itself, and leaves the outer signal alone", () => {
    const outer = new AbortController();
    const scope = abortScope(outer.signal);
    scope.abort("own");
    assert.equal(scope.signal.reason, "own");
    assert.equal(outer.signal.aborted, false);
  });

  test("leaves nothing with the outer signal once it is released", () => {
    const outer = new AbortController();
    const scope = abortScope(outer.signal);
    scope.signal.addEventListener("abort", () => {});
    scope.release();
    assert.deepEqual(getEventListeners(outer.signal, "abort"), []);
  });
});
