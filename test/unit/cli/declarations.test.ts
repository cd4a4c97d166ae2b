import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { declarations } from "../../../src/cli/declarations.ts";

/** What the command prints, and what it asked, of a catalogue that always gives this list. */
const printed = async (options: Omit<Parameters<typeof declarations>[1], "url">, leftOut?: string) => {
  const asked: string[] = [];
  const server = createServer(({ url }, response) => {
    asked.push(url ?? "");
    response.writeHead(200, leftOut === undefined ? {} : { "ambit-left-out": leftOut });
    response.end('[{"name":"now","description":"The time.","parameters":{"type":"object"}}]');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const said = { out: "", err: "" };
  const add = (stream: keyof typeof said) => (text: string) => {
    said[stream] += text;
  };
  const terminal = { out: add("out"), err: add("err"), env: {}, folder: "/", interactive: false, colours: false, now: () => 0 };
  try {
    await declarations(terminal, { ...options, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  } finally {
    server.close();
    server.closeAllConnections();
  }
  return { ...said, asked };
};

test("declarations are asked for as the options say, and printed as they came", async () => {
  const { out, err, asked } = await printed({ format: "anthropic", cache: "1h", defer: "20,regex", strict: "false" });
  assert.deepEqual(asked, ["/v1/declarations?format=anthropic&cache=1h&strict=false&defer=20%2Cregex"]);
  assert.equal(out, '[{"name":"now","description":"The time.","parameters":{"type":"object"}}]\n');
  assert.equal(err, "");
});

test("what the provider would refuse is told beside the list", async () => {
  const { out, err } = await printed({ format: "gemini" }, '"odd";rule="PropertyName";where="/parameters/properties/a b"');
  assert.match(out, /^\[/);
  assert.match(err, /gemini would refuse them: "odd";rule="PropertyName"/);
});

test("a person reads names, descriptions and schemas", async () => {
  const { out, asked } = await printed({ format: "neutral", namespace: "tools" });
  assert.deepEqual(asked, ["/v1/declarations?format=neutral&namespace=tools"]);
  assert.equal(out, 'now  The time.\n  {"type":"object"}\n');
});
