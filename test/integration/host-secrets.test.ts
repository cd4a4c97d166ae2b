import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { HostConfig, HostSecretFolder } from "../../src/api/host.ts";
import { fixture, type HostUnderTest, startHost, temporaryFolder } from "./host-under-test.ts";

const intruder = fixture("intruder.wasm");
const environment = { interface: "ambit:intruder/attempts@0.1.0", function: "environment" };

const secret = (text: string): string => `VERY-SECRET-${createHash("sha256").update(text).digest("hex")}`;

/** A volume as kubelet keeps it: files behind a link that is replaced at once. */
class KubeletVolume {
  readonly folder = mkdtempSync(join(temporaryFolder(), "volume-"));
  #version = 0;

  constructor(files: Readonly<Record<string, string | Uint8Array>>) {
    this.write(files);
    for (const name of Object.keys(files)) symlinkSync(join("..data", name), join(this.folder, name));
  }

  write(files: Readonly<Record<string, string | Uint8Array>>): void {
    const version = `..2026_12_01_00_00_00.${++this.#version}`;
    mkdirSync(join(this.folder, version));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(this.folder, version, name), content);
    symlinkSync(version, join(this.folder, "..data_tmp"));
    renameSync(join(this.folder, "..data_tmp"), join(this.folder, "..data"));
    if (this.#version > 1) rmSync(join(this.folder, `..2026_12_01_00_00_00.${this.#version - 1}`), { recursive: true });
  }
}

const as = (kind: HostSecretFolder["as"], name: string, folder: string): HostSecretFolder => ({ name, folder, as: kind });

const seen = async (host: HostUnderTest): Promise<Record<string, string>> => {
  const { body } = await host.call(environment, {});
  assert.equal(body.outcome, "ok", JSON.stringify(body));
  return Object.fromEntries(body.structured.result ?? body.structured);
};

const until = async (holds: () => boolean): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `it comes to hold: ${holds}`);
    await new Promise((passed) => setTimeout(passed, 50));
  }
};

const withHost = async (config: Partial<HostConfig>, use: (host: HostUnderTest) => Promise<void>): Promise<void> => {
  const host = await startHost({ component: intruder, config });
  try {
    await use(host);
  } finally {
    await host.stop();
  }
};

describe("a host with folders of secrets", () => {
  const first = new KubeletVolume({ TOKEN: secret("a"), SHARED: "of the first\n", ".hidden": secret("hidden"), "no-name": secret("b") });
  const second = new KubeletVolume({ SHARED: "of the second" });
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({
      component: intruder,
      config: {
        environment: { MODE: "test", SHARED: "configured" },
        secretFolders: [as("environment", "Secret first", first.folder), as("environment", "Secret second", second.folder)],
      },
    });
  });
  after(() => host.stop());

  it("gives each guest the files as variables, of a later folder rather than an earlier one or the configuration", async () => {
    assert.deepEqual(await seen(host), { MODE: "test", SHARED: "of the second", TOKEN: secret("a") });
  });

  it("tells of what it left out by name, and never by value", async () => {
    await until(() => host.lines.join().includes("no-name"));
    const text = host.lines.join("\n");
    assert.match(text, /\\"no-name\\" of Secret first has no name of an environment variable/);
    assert.doesNotMatch(text, /VERY-SECRET/);
  });

  it("gives the next call what was rotated, in the same process", async () => {
    await seen(host);
    first.write({ TOKEN: secret("rotated") });
    assert.deepEqual(await seen(host), { MODE: "test", SHARED: "of the second", TOKEN: secret("rotated") });
    second.write({});
    assert.equal((await seen(host)).SHARED, "configured");
    assert.equal(host.child.exitCode, null);
  });

  it("has no value where others may look: not in its arguments, its environment or what it says of itself", async () => {
    const process = ["cmdline", "environ"].map((file) => readFileSync(`/proc/${host.child.pid}/${file}`, "utf8"));
    const told = await Promise.all(["/healthz", "/readyz", "/v1/boot"].map((path) => host.request("GET", path)));
    assert.doesNotMatch(`${process.join()}${JSON.stringify(told)}${host.lines.join()}`, /VERY-SECRET/);
  });
});

describe("a host whose instances are kept", () => {
  it("renews an instance when a secret was rotated", async () => {
    const volume = new KubeletVolume({ TOKEN: "one" });
    await withHost({ callsPerInstance: 100, secretFolders: [as("environment", "s", volume.folder)] }, async (host) => {
      assert.equal((await seen(host)).TOKEN, "one");
      volume.write({ TOKEN: "two" });
      assert.equal((await seen(host)).TOKEN, "two");
      assert.equal((await seen(host)).TOKEN, "two");
    });
  });
});

describe("a host whose component waits at a server for changes", () => {
  it("lets it wait at the server that a rotated secret names, with no call in between", async () => {
    const watching: string[] = [];
    const server = createServer((request, response) => {
      if (request.url === "/tools") response.end("[]");
      else watching.push(request.headers.host ?? "");
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const volume = new KubeletVolume({ FAR_SIDE: "one.test" });
    const host = await startHost({
      component: fixture("faraway.wasm"),
      config: {
        allowedHosts: ["http://one.test", "http://two.test"],
        hostOverrides: { "one.test:80": target, "two.test:80": target },
        secretFolders: [as("environment", "s", volume.folder)],
      },
    });
    try {
      await until(() => watching.join() === "one.test");
      volume.write({ FAR_SIDE: "two.test" });
      await until(() => watching.join() === "one.test,two.test");
    } finally {
      await host.stop();
      server.close();
      server.closeAllConnections();
    }
  });
});

describe("a host with a plain folder", () => {
  it("reads it as it is at each call, follows no link out of it, and fails a call when it has gone", async () => {
    const folder = mkdtempSync(join(temporaryFolder(), "plain-"));
    const outside = join(temporaryFolder(), "outside");
    writeFileSync(outside, secret("outside"));
    writeFileSync(join(folder, "TOKEN"), "plain");
    symlinkSync(outside, join(folder, "LINK"));
    await withHost({ secretFolders: [as("environment", "mine", folder)] }, async (host) => {
      assert.deepEqual(await seen(host), { TOKEN: "plain" });
      writeFileSync(join(folder, "TOKEN"), "changed");
      writeFileSync(join(folder, "MORE"), "");
      assert.deepEqual(await seen(host), { TOKEN: "changed", MORE: "" });
      rmSync(folder, { recursive: true });
      const { body } = await host.call(environment, {});
      assert.deepEqual([body.outcome, /the folder of mine can't be read/.test(body.text)], ["failed", true]);
      assert.doesNotMatch(host.lines.join(), /VERY-SECRET/);
    });
  });

  it("gives headers as lines for the bridge", async () => {
    const folder = mkdtempSync(join(temporaryFolder(), "headers-"));
    writeFileSync(join(folder, "Authorization"), `Bearer ${secret("h")}\n`);
    writeFileSync(join(folder, "Host"), "elsewhere");
    await withHost({ secretFolders: [as("headers", "login", folder)] }, async (host) => {
      assert.deepEqual(await seen(host), { MCP_HEADER_1: `Authorization: Bearer ${secret("h")}` });
      await until(() => /Host.* of login is a header that the bridge sets itself/.test(host.lines.join()));
    });
  });
});
