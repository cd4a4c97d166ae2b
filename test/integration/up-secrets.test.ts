import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { type ChangingServer, startStateless } from "../fixtures/mcp-servers/changing.ts";
import { type Guard, guard } from "../fixtures/mcp-servers/guarded.ts";
import { ambit, type RunningUp } from "../support/ambit-command.ts";
import { developerOf } from "../support/developer.ts";
import { prepareWorkload, type ServedFolder } from "../support/served-folder.ts";

const intruder = resolve(import.meta.dirname, "../fixtures/components/intruder.wasm");

/** Folders that stand in for Secrets and ConfigMaps. */
class Given {
  readonly place: string;

  constructor(place: string) {
    this.place = place;
  }

  static async make(): Promise<Given> {
    return new Given(await mkdtemp(join(tmpdir(), "ambit-given-")));
  }

  folder(name: string): string {
    return join(this.place, name);
  }

  async write(name: string, files: Readonly<Record<string, string>>): Promise<void> {
    await mkdir(this.folder(name), { recursive: true });
    for (const [key, value] of Object.entries(files)) await writeFile(join(this.folder(name), key), value);
  }
}

describe("ambit up with a component that is given secrets", () => {
  const inline = `package ambit:intruder@0.1.0;
    interface attempts {
      /// Tells the variables of its environment.
      environment: func() -> list<tuple<string, string>>;
    }`;
  const spec = (environment: object) => ({
    components: [{ name: "tool", image: "file:tool.wasm", wit: { inline }, localResources: { environment } }],
  });
  const granted = {
    config: { FROM: "config", SHARED: "config" },
    configFrom: [{ name: "settings" }],
    secretFrom: [{ name: "keys" }],
  };
  let given: Given;
  let folder: ServedFolder;
  let up: RunningUp;
  before(async () => {
    given = await Given.make();
    await given.write("settings", { SHARED: "settings", MODE: "settings" });
    await given.write("keys", { SHARED: "keys", TOKEN: "VERY-SECRET-1" });
    await given.write("more", { MORE: "VERY-SECRET-2" });
    const options = ["--secret", `keys=${given.folder("keys")}`, "--config-map", `settings=${given.folder("settings")}`];
    folder = await prepareWorkload(spec(granted), { "tool.wasm": intruder }, options, (tool) => tool === "environment");
    up = await folder.start("--secret", `more=${given.folder("more")}`, "--journal", given.folder("journal"));
  });
  after(async () => {
    await up?.stop();
    await folder?.remove();
    await rm(given.place, { recursive: true, force: true });
  });

  const { ask, until, comesToBe, write } = developerOf(() => ({ up, folder }));
  const seen = async (): Promise<Record<string, string>> => {
    const answer = await ask("/v1/calls", { name: "environment", arguments: {} });
    assert.equal(answer.outcome, "ok", JSON.stringify(answer));
    return Object.fromEntries(JSON.parse(answer.content[0].text));
  };

  it("gives it what the folders hold: a secret goes before a ConfigMap, and that before the configuration", async () => {
    assert.deepEqual(await seen(), { FROM: "config", SHARED: "keys", MODE: "settings", TOKEN: "VERY-SECRET-1" });
  });

  it("gives the next call what is in a folder by then", async () => {
    await given.write("keys", { TOKEN: "VERY-SECRET-3" });
    assert.equal((await seen()).TOKEN, "VERY-SECRET-3");
  });

  it("withholds its tools when it is to get another secret, and restores them when not", async () => {
    await write(spec({ ...granted, secretFrom: [{ name: "keys" }, { name: "more" }] }));
    await comesToBe("");
    const { out } = await ambit(["diff", folder.manifests]);
    assert.match(out, /secret.*more/);
    await write(spec(granted));
    await comesToBe("environment");
    assert.equal((await seen()).MORE, undefined);
  });

  it("withholds nothing for another ConfigMap, which reaches the next call", async () => {
    await write(spec({ ...granted, configFrom: [] }));
    await until("it does without", async () => (await seen()).MODE === undefined);
    await write(spec(granted));
    await until("it has it again", async () => (await seen()).MODE === "settings");
  });

  it("says of a secret without a folder which option names one, and does not run that component", async () => {
    const since = up.events.length;
    await write(spec({ ...granted, secretFrom: [{ name: "unknown" }] }));
    const event = await up.waitFor((one) => JSON.stringify(one).includes("SecretMissing"), since);
    assert.match(JSON.stringify(event), /--secret unknown=FOLDER/);
    await comesToBe("");
    await write(spec(granted));
    await comesToBe("environment");
  });

  it("has no value in what it tells, nor in the journal", async () => {
    assert.doesNotMatch(JSON.stringify(up.events), /VERY-SECRET/);
    const journal = await readFile(given.folder("journal"), "utf8");
    assert.ok(journal.includes("environment"));
    assert.doesNotMatch(journal, /VERY-SECRET/);
  });
});

describe("ambit up with a remote MCP server that wants a token", () => {
  let given: Given;
  let server: ChangingServer;
  let front: Guard;
  let folder: ServedFolder;
  let up: RunningUp;
  before(async () => {
    given = await Given.make();
    await given.write("login", { Authorization: "Bearer VERY-SECRET-1\n" });
    server = await startStateless({
      instructions: "",
      tools: [{ name: "list_issues", description: "Lists issues.", inputSchema: { type: "object" } }],
    });
    front = await guard(server.target, "VERY-SECRET-1");
    const remote = { url: "http://mcp.tools.svc/mcp", headersFrom: [{ name: "login" }] };
    const options = ["--secret", `login=${given.folder("login")}`, "--resolve", `mcp.tools.svc:80=${front.target}`];
    folder = await prepareWorkload({ mcpServers: [{ name: "issues", remote }] }, {}, options);
    up = await folder.start("--journal", given.folder("journal"));
  });
  after(async () => {
    await up?.stop();
    await folder?.remove();
    await front?.stop();
    await server?.stop();
    await rm(given.place, { recursive: true, force: true });
  });

  const { ask, until } = developerOf(() => ({ up, folder }));
  const call = () => ask("/v1/calls", { name: "list_issues", arguments: {} });

  it("shows it with every request", async () => {
    assert.equal((await call()).outcome, "ok");
    assert.ok(front.shown.length > 2);
    assert.deepEqual([...new Set(front.shown)], ["Bearer VERY-SECRET-1"]);
  });

  it("shows the new one when it was rotated, where it waits for changes as well", async () => {
    front.accept("VERY-SECRET-2");
    assert.equal((await call()).outcome, "failed");
    await given.write("login", { Authorization: "Bearer VERY-SECRET-2" });
    assert.equal((await call()).outcome, "ok");
    const { lists } = server;
    await until("the list is asked for anew", async () => server.lists > lists);
  });

  it("has the secret's name in what is reviewed, and its value nowhere", async () => {
    const [grant = ""] = await readdir(join(folder.manifests, "grants"));
    const { spec } = parse(await readFile(join(folder.manifests, "grants", grant), "utf8"));
    assert.deepEqual(spec.review.reach.secrets, ["login"]);
    assert.doesNotMatch(
      `${JSON.stringify(spec)}${JSON.stringify(up.events)}${await readFile(given.folder("journal"), "utf8")}`,
      /VERY-SECRET/,
    );
  });
});
