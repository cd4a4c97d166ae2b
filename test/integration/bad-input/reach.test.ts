import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { fixture, type HostUnderTest, startHost, temporaryFolder } from "../host-under-test.ts";

const attempt = (name: string) => ({ interface: "ambit:intruder/attempts@0.1.0", function: name });

/** The host's name service, replaced from outside: what an attacker's zone would answer. */
const poisonedNames = {
  "rebound.test": ["127.0.0.1"],
  "rebound6.test": ["::1"],
  "mapped.test": ["::ffff:127.0.0.1"],
  "metadata.test": ["169.254.169.254"],
  "inside.test": ["10.0.0.7"],
};
const nameService = `data:text/javascript,${encodeURIComponent(`
  import dns from "node:dns/promises";
  import { syncBuiltinESMExports } from "node:module";
  const zone = ${JSON.stringify(poisonedNames)};
  dns.lookup = async (name) => (zone[name] ?? []).map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  syncBuiltinESMExports();
`)}`;

describe("a guest that reaches for what it was not granted", () => {
  let server: Server;
  let host: HostUnderTest;
  /** Paths that were asked of the server on this machine. */
  const asked: string[] = [];

  before(async () => {
    server = createServer((request, response) => {
      asked.push(request.url ?? "");
      if (request.url === "/away") response.writeHead(302, { location: "http://elsewhere.test/secret" }).end();
      else response.end("granted");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const local = `127.0.0.1:${port}`;
    const root = temporaryFolder();
    mkdirSync(join(root, "docs"));
    writeFileSync(join(root, "secret"), "s3cret");
    writeFileSync(join(root, "docs/page"), "granted");
    symlinkSync("/etc/passwd", join(root, "docs/passwd"));
    symlinkSync("../secret", join(root, "docs/out"));
    symlinkSync("..", join(root, "docs/above"));
    host = await startHost({
      component: fixture("intruder.wasm"),
      limits: { timeoutMs: 5_000 },
      flags: ["--import", nameService],
      config: {
        allowedHosts: ["http://pages.test", ...Object.keys(poisonedNames).map((name) => `${name}:${port}`), local, "169.254.169.254"],
        // The last two are granted to nobody: were they dialled all the same, the server would hear of it.
        hostOverrides: { "pages.test:80": local, "elsewhere.test:80": local, "pages.test:8080": local },
        mounts: [{ name: "docs", folder: join(root, "docs"), mountPath: "/docs", readOnly: true }],
      },
    });
  });
  after(async () => {
    await host?.stop();
    server.closeAllConnections();
    server.close();
  });

  /** After each attempt the granted file and host still answer. */
  afterEach(async () => {
    assert.equal((await host.call(attempt("read-file"), { mount: "/docs", path: "page" })).body.text, "granted");
    const reply = await host.call(attempt("http-get"), { url: "http://pages.test/", headers: [], redirects: 0 });
    assert.equal(reply.body.structured?.body, "granted", JSON.stringify(reply.body));
    asked.length = 0;
  });

  const denied = async (name: string, args: object, says: RegExp): Promise<void> => {
    const { status, body } = await host.call(attempt(name), args);
    assert.deepEqual([status, body.outcome], [200, "tool-error"], JSON.stringify(body));
    assert.match(body.text, says);
    assert.doesNotMatch(body.text, /root:|s3cret|127\.0\.0\.1 is|loopback/);
  };

  const paths: Record<string, string> = {
    "../../etc/passwd": "../../etc/passwd",
    "the same after a granted folder": "./page/../../../etc/passwd",
    "an absolute path": "/etc/passwd",
    "an absolute symlink out": "passwd",
    "a relative symlink out": "out",
    "a folder's symlink out": "above/secret",
  };
  for (const [what, path] of Object.entries(paths)) {
    it(`${what} is not permitted`, () => denied("read-file", { mount: "/docs", path }, /^(not-permitted|not-directory)$/));
  }
  it("a new symlink, and a mount that is none, are not had either", async () => {
    await denied("make-symlink", { mount: "/docs", target: "/etc", path: "etc" }, /not-permitted|read-only/);
    await denied("read-file", { mount: "/etc", path: "passwd" }, /nothing is mounted/);
  });

  const urls: Record<string, { url: string; redirects?: number; says: RegExp; asks?: string[] }> = {
    "another host": { url: "http://elsewhere.test/", says: /http:\/\/elsewhere\.test:80 is not granted/ },
    "another port of a granted host": { url: "http://pages.test:8080/", says: /http:\/\/pages\.test:8080 is not granted/ },
    "another scheme of a granted host": { url: "https://pages.test/", says: /https:\/\/pages\.test:443 is not granted/ },
    "a redirect to another host": {
      url: "http://pages.test/away",
      redirects: 3,
      says: /http:\/\/elsewhere\.test:80 is not granted/,
      asks: ["/away"],
    },
  };
  for (const [what, { url, redirects = 0, says, asks = [] }] of Object.entries(urls)) {
    it(`${what} is denied by name`, async () => {
      await denied("http-get", { url, headers: [], redirects }, says);
      assert.deepEqual(asked, asks);
    });
  }

  for (const name of Object.keys(poisonedNames)) {
    it(`a granted name that resolves to ${poisonedNames[name as keyof typeof poisonedNames]} is not dialled`, async () => {
      const { port } = server.address() as AddressInfo;
      await denied("http-get", { url: `http://${name}:${port}/`, headers: [], redirects: 0 }, new RegExp(`${name}.* may not be dialled`));
      assert.deepEqual(asked, []);
    });
  }
  it("nor is a granted address that no tool may dial", async () => {
    const { port } = server.address() as AddressInfo;
    await denied("http-get", { url: `http://127.0.0.1:${port}/`, headers: [], redirects: 0 }, /may not be dialled/);
    await denied("http-get", { url: "http://169.254.169.254/latest/meta-data", headers: [], redirects: 0 }, /may not be dialled/);
    assert.deepEqual(asked, []);
  });
});
