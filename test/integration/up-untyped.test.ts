import assert from "node:assert/strict";
import { resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import type { RunningUp } from "../support/ambit-command.ts";
import { prepareFolder, type ServedFolder, token } from "../support/served-folder.ts";

describe("ambit up with a component that lists its own tools", () => {
  let folder: ServedFolder;
  let up: RunningUp;
  before(async () => {
    folder = await prepareFolder(
      resolve(import.meta.dirname, "../fixtures/components/conformance.wasm"),
      (name) => name !== "test_headers",
    );
    up = await folder.start();
  });
  after(async () => {
    await up?.stop();
    await folder?.remove();
  });

  const ask = async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(
      `${up.url}${path}`,
      body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) },
    );
    // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it isn't there
    return (await response.json()) as any;
  };

  it("offers the tools that were drafted from its list and approved, and no other", async () => {
    const declared = (await ask("/v1/declarations")) as { name: string; description: string }[];
    const names = declared.map(({ name }) => name);
    assert.ok(names.includes("test_simple_text"));
    assert.ok(!names.includes("test_headers"));
    assert.equal(declared.find(({ name }) => name === "test_simple_text")?.description, "Answers with a text.");
  });

  it("has them called", async () => {
    const answer = await ask("/v1/calls", { name: "test_structured_content", arguments: { a: 1, b: 2 } });
    assert.deepEqual([answer.outcome, answer.structuredContent], ["ok", { sum: 3 }]);
  });

  it("judges their arguments by the reviewed schema alone", async () => {
    const answer = await ask("/v1/calls", { name: "test_structured_content", arguments: { a: 1, b: "2" } });
    assert.equal(answer.outcome, "failed");
    assert.match(answer.content[0].text, /\/b/);
  });

  it("gives content of several kinds", async () => {
    const answer = await ask("/v1/calls", { name: "test_multiple_content_types", arguments: {} });
    assert.deepEqual(
      answer.content.map(({ type }: { type: string }) => type),
      ["text", "image", "resource"],
    );
  });
});
