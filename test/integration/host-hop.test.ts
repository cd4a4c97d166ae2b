import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { bridgeComponent } from "./bridge-under-test.ts";
import { type HostUnderTest, startHost } from "./host-under-test.ts";

const server = readFileSync(new URL("../../examples/mcp-server-component/issues-mcp.wasm", import.meta.url));
const credential = "c".repeat(43);
const authority = "issues-mcp";

const bridgeConfig = {
  hop: { authority },
  environment: { MCP_URL: `http://${authority}/mcp` },
  callsPerInstance: 1000,
};

type Server = { readonly address: string; readonly port: number };

const reach = (host: HostUnderTest, version: number, servers: readonly Server[], shown = credential) =>
  host.request(
    "PUT",
    "/v1/hop",
    host.signedByRoot({ kind: "hop", boot: host.boot, version, reach: { authority, credential: shown, servers } }),
  );

const listing = async (host: HostUnderTest) => {
  const request = host.signedByRoot({ kind: "listing", boot: host.boot, known: null, waitMs: 10_000 });
  return (await host.request("POST", "/v1/listing", request)).body as { digest: string | null; fault: { message: string } | null };
};

/** The list, or why there is none, once that is what is wanted: what was found before the hop was told is told until it is tried again. */
const comesTo = async (host: HostUnderTest, fault: RegExp | null): Promise<void> => {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const told = await listing(host);
    if (fault === null ? told.digest !== null && told.fault === null : fault.test(told.fault?.message ?? "")) return;
    assert.ok(Date.now() < deadline, JSON.stringify(told.fault));
    await new Promise((passed) => setTimeout(passed, 50));
  }
};

const isReady = async (host: HostUnderTest): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while ((await host.request("GET", "/readyz")).status !== 200) {
    assert.ok(Date.now() < deadline, "the host did not become ready");
    await new Promise((passed) => setTimeout(passed, 5));
  }
};

describe("the hop from a bridge to a server that is a component", () => {
  let serving: HostUnderTest;
  let place: Server;
  const bridges: HostUnderTest[] = [];
  before(async () => {
    serving = await startHost({ component: server, config: { serve: { address: "127.0.0.1", port: 0 } } });
    await serving.request("PUT", "/v1/hop", serving.signedByRoot({ kind: "hop", boot: serving.boot, version: 1, accept: [credential] }));
    place = { address: "127.0.0.1", port: Number(new URL(serving.serving ?? "").port) };
  });
  after(async () => {
    for (const host of [...bridges, serving]) await host?.stop();
  });
  const bridge = async (deliver: "all" | "nothing" = "all"): Promise<HostUnderTest> => {
    const host = await startHost({ component: bridgeComponent, config: bridgeConfig, deliver });
    bridges.push(host);
    return host;
  };

  test("leads to the server, with the credential that the bridge's own component never sees", async () => {
    const host = await bridge();
    assert.deepEqual((await host.request("GET", "/readyz")).body, { ready: false, missing: ["hop"] });
    assert.equal((await reach(host, 1, [place])).status, 200);
    await isReady(host);
    await comesTo(host, null);
  });

  test("is known to a component that was being loaded from the cache when it was told", async () => {
    const host = await bridge("nothing");
    await host.request("PUT", "/v1/keys", host.signedByRoot(host.keySet()));
    await reach(host, 1, [place]);
    await isReady(host);
    await comesTo(host, null);
  });

  test("is tried at the next server where one takes no connection", async () => {
    const closed = await new Promise<number>((found) => {
      const taken = createServer().listen(0, "127.0.0.1", () => {
        const { port } = taken.address() as { port: number };
        taken.close(() => found(port));
      });
    });
    const host = await bridge();
    await reach(host, 1, [{ address: "127.0.0.1", port: closed }, place]);
    await isReady(host);
    await comesTo(host, null);
  });

  test("leads nowhere while there is no server, and the list says so", async () => {
    const host = await bridge();
    await reach(host, 1, []);
    await isReady(host);
    await comesTo(host, /issues-mcp refused the connection/);
  });

  test("opens no door with another credential", async () => {
    const host = await bridge();
    await reach(host, 1, [place], "d".repeat(43));
    await isReady(host);
    await comesTo(host, /does not take the credentials/);
  });

  test("is no name for anybody else, and no other server of this bridge's", async () => {
    const host = await bridge();
    const wrong = { authority: "other-mcp", credential, servers: [place] };
    const told = await host.request("PUT", "/v1/hop", host.signedByRoot({ kind: "hop", boot: host.boot, version: 1, reach: wrong }));
    assert.deepEqual([told.status, told.body.code], [409, "DeliveryMisdirected"]);
    const unchecked = { authority, credential, ca: "a certificate", servers: [place] };
    const loose = await host.request("PUT", "/v1/hop", host.signedByRoot({ kind: "hop", boot: host.boot, version: 1, reach: unchecked }));
    assert.deepEqual([loose.status, loose.body.code], [422, "DeliveryMalformed"]);
  });
});
