import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Stalled } from "../../../src/api/errors.ts";
import { loadAccess } from "../../../src/kube/access.ts";
import { podAccess } from "../../../src/kube/pod-access.ts";
import { ManualClock } from "./manual-clock.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const kubeconfig = ({ cluster = {}, user = {}, context = {} }: { cluster?: object; user?: object; context?: object }): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [
      { name: "here", context: { cluster: "c", user: "u", ...context } },
      { name: "there", context: { cluster: "c", user: "u", namespace: "there" } },
    ],
    clusters: [{ name: "c", cluster: { server: "https://api.example.com:6443", ...cluster } }],
    users: [{ name: "u", user }],
  });

describe("access to a cluster", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-access-"));
  });
  after(() => rm(folder, { recursive: true }));

  const load = async (config: string, context?: string, clock = new ManualClock()) => {
    const file = join(folder, "config");
    await writeFile(file, config);
    return loadAccess({ file, ...(context === undefined ? {} : { context }) }, clock);
  };

  const users: Record<string, { user: object; cluster?: object; headers: object; tls: object }> = {
    "a token": { user: { token: "t" }, headers: { authorization: "Bearer t" }, tls: {} },
    "a name and a password": {
      user: { username: "a", password: "b" },
      headers: { authorization: `Basic ${base64("a:b")}` },
      tls: {},
    },
    "a client certificate": {
      user: { "client-certificate-data": base64("cert"), "client-key-data": base64("key") },
      cluster: { "certificate-authority-data": base64("ca"), "tls-server-name": "kubernetes" },
      headers: {},
      tls: { ca: Buffer.from("ca"), cert: Buffer.from("cert"), key: Buffer.from("key"), servername: "kubernetes" },
    },
    "another's name": { user: { token: "t", as: "jane" }, headers: { authorization: "Bearer t", "impersonate-user": "jane" }, tls: {} },
    "no check of the server": {
      user: { token: "t" },
      cluster: { "insecure-skip-tls-verify": true },
      headers: { authorization: "Bearer t" },
      tls: { rejectUnauthorized: false },
    },
  };
  for (const [what, { user, cluster = {}, headers, tls }] of Object.entries(users)) {
    test(`is had by ${what}`, async () => {
      const access = await load(kubeconfig({ user, cluster }));
      assert.equal(access.server.href, "https://api.example.com:6443/");
      assert.deepEqual(await access.credentials(), { headers, tls });
    });
  }

  test("takes the namespace of the context that is asked for", async () => {
    assert.equal((await load(kubeconfig({}))).namespace, "default");
    assert.equal((await load(kubeconfig({ context: { namespace: "own" } }))).namespace, "own");
    assert.equal((await load(kubeconfig({}), "there")).namespace, "there");
  });

  test("reads what is on disk again after a while, and at once when it was not accepted", async () => {
    const clock = new ManualClock();
    const ca = join(folder, "ca.crt");
    await writeFile(ca, "first");
    const access = await load(kubeconfig({ user: { token: "t" }, cluster: { "certificate-authority": ca } }), undefined, clock);
    const caNow = async (fresh?: boolean) => String((await access.credentials(fresh)).tls.ca);
    assert.equal(await caNow(), "first");
    await writeFile(ca, "second");
    clock.pass(9000);
    assert.equal(await caNow(), "first");
    clock.pass(1000);
    assert.equal(await caNow(), "second");
    await writeFile(ca, "third");
    assert.equal(await caNow(true), "third");
  });

  const unusable: Record<string, { config: string; context?: string; message: RegExp }> = {
    "a file that is no YAML": { config: "{", message: /cannot be read/ },
    "an empty file": { config: "", message: /cannot be read/ },
    "a context that is not there": { config: kubeconfig({}), context: "nowhere", message: /names no cluster for its context "nowhere"/ },
    "a server that is no URL": { config: kubeconfig({ cluster: { server: "nowhere" } }), message: /nowhere/ },
    "a proxy that is not supported": {
      config: kubeconfig({ cluster: { "proxy-url": "socks5://127.0.0.1:1" } }),
      message: /only http and https/,
    },
  };
  for (const [what, { config, context, message }] of Object.entries(unusable)) {
    test(`says what is wrong with ${what}`, async () => {
      await assert.rejects(load(config, context), (thrown) => {
        assert.ok(thrown instanceof Stalled);
        assert.equal(thrown.code, "KubeconfigUnusable");
        assert.match(thrown.message, message);
        return true;
      });
    });
  }

  test("says that credentials can't be had", async () => {
    const access = await load(kubeconfig({ cluster: { "certificate-authority": join(folder, "missing.crt") } }));
    await assert.rejects(access.credentials(), (thrown) => thrown instanceof Stalled && thrown.code === "CredentialsUnusable");
  });

  describe("of a pod", () => {
    let account: string;
    const environment = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };
    before(async () => {
      account = await mkdtemp(join(folder, "account-"));
      await writeFile(join(account, "ca.crt"), "ca");
      await writeFile(join(account, "namespace"), "ambit-system");
      await writeFile(join(account, "token"), "first\n");
    });

    test("is its service account's, whose token is read again as it is replaced", async () => {
      const clock = new ManualClock();
      const access = await loadAccess({}, clock, { environment, folder: account });
      assert.equal(access.server.href, "https://10.96.0.1/");
      assert.equal(access.namespace, "ambit-system");
      assert.deepEqual(await access.credentials(), { headers: { authorization: "Bearer first" }, tls: { ca: "ca" } });
      await writeFile(join(account, "token"), "second");
      clock.pass(10_000);
      assert.equal((await access.credentials()).headers.authorization, "Bearer second");
      await rm(join(account, "token"));
      await assert.rejects(access.credentials(true), { code: "CredentialsUnusable" });
      await writeFile(join(account, "token"), "first");
    });

    test("takes an IPv6 address", async () => {
      const { server } = await loadAccess({}, new ManualClock(), {
        environment: { ...environment, KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" },
        folder: account,
      });
      assert.equal(server.href, "https://[fd00::1]:6443/");
    });

    const elsewhere: Record<string, { environment: Record<string, string>; folder?: string }> = {
      "the environment names no API server": { environment: {} },
      "there is no token": { environment, folder: "/nowhere" },
    };
    for (const [why, { environment: given, folder: where }] of Object.entries(elsewhere)) {
      test(`is none when ${why}`, async () => {
        assert.equal(await podAccess(new ManualClock(), { environment: given, folder: where ?? account }), null);
      });
    }

    test("gives way to a kubeconfig that is named", async () => {
      const file = join(folder, "named");
      await writeFile(file, kubeconfig({ user: { token: "t" } }));
      const { server } = await loadAccess({ file }, new ManualClock(), { environment, folder: account });
      assert.equal(server.hostname, "api.example.com");
    });
  });
});
