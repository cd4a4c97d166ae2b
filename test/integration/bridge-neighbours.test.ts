import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type ChangingServer, startStateless } from "../fixtures/mcp-servers/changing.ts";
import type { RunningUp } from "../support/ambit-command.ts";
import { prepareWorkload, type ServedFolder, token } from "../support/served-folder.ts";
import { type ServerProcess, startServer } from "./bridge-under-test.ts";

const hostileServer = fileURLToPath(new URL("../fixtures/mcp-servers/hostile.ts", import.meta.url));

const remote = (name: string, path: string) => ({ name, remote: { url: `http://hostile.test${path}` } });

/** Servers whose list, or what they tell by themselves, keeps their bridge busy all the while, and what is said of them. */
const busy = {
  never: { path: "/lists/never", said: /did not finish|NotListed|ListingFailed/ },
  gigabyte: { path: "/lists/gigabyte", said: /it is too large|did not finish/ },
  flood: { path: "/watches/other-things", said: null },
};

/** Tools of an approved server, each of which misbehaves when it is called. */
const misbehaving = [
  "never",
  "gigabyte",
  "gigabyte-of-events",
  "endless-notifications",
  "malformed-json",
  "malformed-headers",
  "closes",
  "redirects",
];

const good = { name: "good_one", description: "Does it.", inputSchema: { type: "object" as const } };

describe("beside servers that mean harm, in ambit up", () => {
  let hostile: ServerProcess;
  let server: ChangingServer;
  let folder: ServedFolder;
  let up: RunningUp;
  before(async () => {
    hostile = await startServer(hostileServer);
    server = await startStateless({ tools: [good], instructions: "" });
    const mcpServers = [
      { name: "good", remote: { url: "http://localhost/mcp" } },
      { ...remote("calls", "/calls"), limits: { timeout: "5s" } },
    ];
    const reach = ["--resolve", `localhost:80=${server.target}`, "--resolve", `hostile.test:80=${hostile.target}`];
    folder = await prepareWorkload({ mcpServers }, {}, reach, (name) => name === good.name || misbehaving.includes(name));
    const neighbours = {
      mcpServers: Object.entries(busy).map(([name, { path }]) => ({ ...remote(name, path), limits: { timeout: "5s" } })),
    };
    const workload = {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "neighbours", namespace: "agents" },
      spec: neighbours,
    };
    await writeFile(join(folder.manifests, "neighbours.yaml"), JSON.stringify(workload));
    up = await folder.start();
  });
  after(async () => {
    await up?.stop();
    await folder?.remove();
    await server?.stop();
    await hostile?.stop();
  });

  const called = async (name: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ name, arguments: {} });
    const answer = await fetch(`${up.url}/v1/calls`, { method: "POST", headers, body });
    return ((await answer.json()) as { outcome: string }).outcome;
  };

  for (const name of misbehaving) {
    it(`another server's tool is called while a call does this: ${name}`, async () => {
      let ended = false;
      const harmful = called(name).finally(() => {
        ended = true;
      });
      for (let call = 0; call < 5; call++) assert.equal(await called("good_one"), "ok");
      if (name === "never") assert.equal(ended, false);
      assert.equal(await harmful, "failed");
    });
  }

  it("another server's list is heard, and offered tools stay offered", async () => {
    const harmful = ["never", "gigabyte"].map(called);
    server.say({ tools: [good, { ...good, name: "new_one" }], instructions: "" });
    await up.waitFor(({ event, ungranted }) => event === "settled" && JSON.stringify(ungranted).includes("new_one"));
    assert.equal(await called("good_one"), "ok");
    for (const outcome of await Promise.all(harmful)) assert.equal(outcome, "failed");
  });

  it("each of them is told with what it does", async () => {
    for (const [name, { said }] of Object.entries(busy)) {
      if (said === null) continue;
      const ofIt = ({ event, key }: RunningUp["events"][number]) =>
        event === "host-said" && (key as { component: string }).component === name;
      const { text } = up.events.find(ofIt) ?? (await up.waitFor(ofIt));
      assert.match(String(text), said);
    }
  });
});
