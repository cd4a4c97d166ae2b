import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type OwnApiServer, startOwnApiServer, whyNoOwnApiServer } from "../cluster/api-server.ts";

/** The suites' own API server can be broken in the ways that they rely on. */
describe("an API server of the test's own", { skip: whyNoOwnApiServer() ?? false }, () => {
  const path = "/api/v1/namespaces/default/configmaps";
  let server: OwnApiServer;
  before(async () => {
    server = await startOwnApiServer();
  });
  after(() => server[Symbol.asyncDispose]());

  const versionOf = (body: string): string => JSON.parse(body).metadata.resourceVersion;

  test("is not reached while it is stopped, and keeps what it was given", async () => {
    const { status, body } = await server.request("POST", path, { metadata: { name: "kept" }, data: { a: "1" } });
    assert.equal(status, 201, body);
    await server.stop("SIGKILL");
    await assert.rejects(server.request("GET", path), { code: "ECONNREFUSED" });
    await server.start();
    assert.equal(JSON.parse((await server.request("GET", `${path}/kept`)).body).data.a, "1");
  });

  test("has forgotten what was before a compaction", async () => {
    const old = versionOf((await server.request("GET", path)).body);
    for (const value of ["2", "3"]) {
      const { status } = await server.request("PATCH", `${path}/kept`, { data: { a: value } }, "application/merge-patch+json");
      assert.equal(status, 200);
    }
    const exactly = `${path}?resourceVersion=${old}&resourceVersionMatch=Exact`;
    assert.equal((await server.request("GET", exactly)).status, 200);
    await server.compact();
    // The server's own cache remembers longer than etcd.
    await server.stop();
    await server.start();
    assert.equal((await server.request("GET", exactly)).status, 410);
  });

  test("runs no controllers, and takes a pod without a service account", async () => {
    const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "none" }] } };
    const { status, body } = await server.request("POST", "/api/v1/namespaces/default/pods", pod);
    assert.equal(status, 201, body);
  });
});
