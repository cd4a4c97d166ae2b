import assert from "node:assert/strict";
import { readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { prepareFolder, token } from "../support/served-folder.ts";
import { runInspector, whyNoInspector } from "./inspector.ts";

const echo = join(fileURLToPath(new URL("../fixtures/components/", import.meta.url)), "echo.wasm");
const tool = "greet";
const ada = { name: tool, arguments: { name: "Ada" } };
const requestInit = { headers: { authorization: `Bearer ${token}` } };
const self = { name: "ambit-test", version: "1" };

test("official clients list and call what is served, in the new protocol and the old", async (t) => {
  const prepared = await prepareFolder(echo, (name) => name === tool);
  t.after(() => prepared.remove());
  const served = await prepared.start();
  t.after(() => served.stop());
  const url = new URL("/mcp", served.url);

  const greeted = ({ content, isError }: { readonly content?: unknown; readonly isError?: boolean | undefined }): void => {
    assert.equal(isError ?? false, false);
    assert.match(JSON.stringify(content), /Ada/);
  };

  for (const { name, negotiation, revision } of [
    { name: "the current client, in 2026-07-28", negotiation: { mode: { pin: "2026-07-28" } }, revision: "2026-07-28" },
    { name: "the current client, finding out what is spoken", negotiation: { mode: "auto" }, revision: "2026-07-28" },
    { name: "the current client, in a session", negotiation: { mode: "legacy" }, revision: "2025-11-25" },
  ] as const) {
    await t.test(name, async () => {
      const client = new Client(self, { versionNegotiation: negotiation });
      const transport = new StreamableHTTPClientTransport(url, { requestInit });
      await client.connect(transport);
      assert.equal(transport.protocolVersion, revision);
      assert.equal(client.getServerVersion()?.name, "ambit");
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map((one) => [one.name, one.annotations?.readOnlyHint, one.outputSchema !== undefined]),
        [[tool, true, true]],
      );
      const answer = await client.callTool(ada);
      greeted(answer);
      assert.ok(answer.structuredContent);
      await assert.rejects(client.callTool({ name: "nobody", arguments: {} }), { code: -32602 });
      const wrong = await client.callTool({ name: tool, arguments: { name: 1 } });
      assert.equal(wrong.isError, true);
      await client.close();
    });
  }

  await t.test("the client before it, in a session", async () => {
    const client = new OldClient(self);
    const transport = new OldTransport(url, { requestInit });
    await client.connect(transport);
    assert.match(transport.sessionId ?? "", /^[\x21-\x7e]+$/);
    assert.deepEqual(
      (await client.listTools()).tools.map((one) => one.name),
      [tool],
    );
    greeted(CallToolResultSchema.parse(await client.callTool(ada)));
    await assert.rejects(client.callTool({ name: "nobody", arguments: {} }), { code: -32602 });
    await transport.terminateSession();
    await client.close();
  });

  await t.test("both hear that a tool was withdrawn, without asking", async () => {
    const { promise: newHeard, resolve: newHears } = Promise.withResolvers<readonly string[]>();
    const client = new Client(self, {
      versionNegotiation: { mode: { pin: "2026-07-28" } },
      listChanged: { tools: { onChanged: (error, tools) => error === null && newHears((tools ?? []).map((one) => one.name)) } },
    });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    const old = new OldClient(self);
    const { promise: oldHeard, resolve: oldHears } = Promise.withResolvers<void>();
    old.setNotificationHandler(ToolListChangedNotificationSchema, () => oldHears());
    await old.connect(new OldTransport(url, { requestInit }));
    await old.listTools();
    await client.listTools();
    await withdrawn(prepared.manifests, async () => {
      assert.deepEqual(await newHeard, []);
      await oldHeard;
      assert.deepEqual((await old.listTools()).tools, []);
    });
    await client.close();
    await old.close();
    await served.waitFor(({ event }) => event === "settled");
  });

  const reason = await whyNoInspector();
  for (const era of ["legacy", "modern"] as const) {
    await t.test(`the inspector's command, ${era}`, { skip: reason ?? false }, async () => {
      const listed = await runInspector(url.href, token, era, ["--method", "tools/list"]);
      assert.match(listed, /"name": *"greet"/);
      const called = await runInspector(url.href, token, era, ["--method", "tools/call", "--tool-name", tool, "--tool-arg", "name=Ada"]);
      assert.match(called, /Ada/);
    });
  }
});

/** Takes the approved grant out of the folder, and puts it back. */
const withdrawn = async (manifests: string, meanwhile: () => Promise<void>): Promise<void> => {
  const folder = join(manifests, "grants");
  for (const file of (await readdir(folder)).map((name) => join(folder, name))) {
    if (!/^ *review:/m.test(await readFile(file, "utf8"))) continue;
    await rename(file, `${file}.away`);
    await meanwhile();
    await rename(`${file}.away`, file);
    return;
  }
  throw new Error("there is no approved grant in the folder");
};
