import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { bridgeTo } from "../integration/bridge-under-test.ts";
import { type ClientContext, callByBridge } from "./bridge-client.ts";
import { type Revision, revisions, suiteFolder } from "./official-suite.ts";

const command = fileURLToPath(new URL("bridge-client-command.ts", import.meta.url));

/** What the suite has for clients that does not apply to the bridge, and why. */
const notApplicable: Readonly<Record<string, string>> = {
  "auth/": "the bridge sends the credentials that it was given; it gets none by itself",
  "elicitation-": "the bridge declares no elicitation: nobody is there to be asked",
  "sep-2322-": "a call for which the server wants more input ends as an error that the model reads",
};

/** Newer than the frozen list of what the revisions require. */
const besides = ["json-schema-2020-12-preservation"];

const required = async (revision: Revision): Promise<string[]> => {
  const all = parse(await readFile(join(suiteFolder, "requirements", `${revision}.yaml`), "utf8")) as { readonly client: string[] };
  return [...all.client, ...besides].filter((scenario) => !Object.keys(notApplicable).some((prefix) => scenario.startsWith(prefix)));
};

const cases = (
  await Promise.all(revisions.map(async (revision) => (await required(revision)).map((scenario) => ({ revision, scenario }))))
).flat();

describe("the bridge as a client in MCP's official conformance suite", { concurrency: 3 }, () => {
  let folder: string;
  let control: Server;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-conformance-"));
    control = createServer(async (request, response) => {
      const { url, context } = (await json(request)) as { url: string; context: ClientContext };
      await callByBridge(url, context).then(
        () => response.end(),
        (error) => response.writeHead(500).end(String(error)),
      );
    }).listen(0, "127.0.0.1");
    await once(control, "listening");
    // The bridge is compiled once, not by the first three hosts at a time.
    await (await bridgeTo("127.0.0.1:9")).stop();
  });
  after(async () => {
    control.close();
    await rm(folder, { recursive: true, force: true });
  });

  for (const { revision, scenario } of cases) {
    it(`passes ${scenario} of ${revision}, without a warning`, async () => {
      const results = join(folder, revision, scenario);
      const args = ["client", "--command", `${process.execPath} ${command}`, "--scenario", scenario, "--spec-version", revision];
      const child = spawn(process.execPath, [join(suiteFolder, "dist", "index.js"), ...args, "--output-dir", results], {
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, CLIENT_CONTROL: `http://127.0.0.1:${(control.address() as AddressInfo).port}/` },
      });
      const [said] = await Promise.all([text(child.stdout), once(child, "close")]);
      const [written] = await readdir(results);
      const checks = JSON.parse(await readFile(join(results, written ?? "", "checks.json"), "utf8")) as { id: string; status: string }[];
      const wrong = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING").map(({ id, status }) => `${id}: ${status}`);
      assert.deepEqual(wrong, [], said);
      assert.ok(
        checks.some(({ status }) => status === "SUCCESS"),
        said,
      );
    });
  }
});
