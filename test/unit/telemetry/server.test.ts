import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";
import { Stalled } from "../../../src/api/errors.ts";
import { type ScrapedMetrics, scrapedMetrics } from "../../../src/telemetry/prometheus.ts";
import { serveTelemetry, type TelemetryParts } from "../../../src/telemetry/server.ts";
import { scrape } from "../../support/scraped.ts";

const place = { address: "127.0.0.1", port: 0 };

const serving = async (change: Partial<TelemetryParts> = {}) => {
  const faults: unknown[] = [];
  const server = await serveTelemetry(place, {
    metrics: scrapedMetrics(),
    isReady: () => true,
    report: (fault) => faults.push(fault),
    ...change,
  });
  const { port } = server.address;
  const ask = (path: string, method = "GET") => fetch(`http://127.0.0.1:${port}${path}`, { method });
  return { ask, port, faults, [Symbol.asyncDispose]: server.close };
};

test("metrics are scraped, and a replica is alive before it is ready", async () => {
  let isReady = false;
  await using served = await serving({ isReady: () => isReady });
  assert.ok((await scrape(served.port)).scraped.labels.has("ambit_build_info"));
  assert.equal((await served.ask("/healthz")).status, 200);
  assert.equal((await served.ask("/readyz")).status, 503);
  isReady = true;
  assert.equal((await served.ask("/readyz?verbose")).status, 200);
});

test("it answers to nothing else", async () => {
  await using served = await serving();
  assert.equal((await served.ask("/v1/declarations")).status, 404);
  assert.equal((await served.ask("/metrics", "POST")).status, 405);
  const probe = await served.ask("/healthz", "HEAD");
  assert.deepEqual([probe.status, await probe.text()], [200, ""]);
});

test("a web page's name that leads to this machine gets nothing", async () => {
  await using served = await serving();
  const status = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const asked = get({ host: "127.0.0.1", port: served.port, path: "/metrics", headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.on("error", reject);
    });
  assert.deepEqual(
    await Promise.all(["evil.example", `evil.example:${served.port}`, "127.0.0.1.evil.example"].map(status)),
    [421, 421, 421],
  );
  assert.deepEqual(await Promise.all(["localhost", `127.0.0.1:${served.port}`, "[::1]:9"].map(status)), [200, 200, 200]);
});

test("a scrape that fails is told here and not there", async () => {
  const metrics: ScrapedMetrics = { ...scrapedMetrics(), text: () => Promise.reject(new Error("the secret reason")) };
  await using served = await serving({ metrics });
  const answer = await served.ask("/metrics");
  assert.equal(answer.status, 500);
  assert.doesNotMatch(await answer.text(), /secret/);
  assert.equal(served.faults.length, 1);
});

test("a head that is too long ends the connection, and nothing else", async () => {
  await using served = await serving();
  const answer = await fetch(`http://127.0.0.1:${served.port}/metrics`, { headers: { "x-long": "a".repeat(9 * 1024) } });
  assert.equal(answer.status, 431);
  assert.equal((await served.ask("/healthz")).status, 200);
});

test("a port that is taken is said with what it was for", async () => {
  await using served = await serving();
  await assert.rejects(
    serveTelemetry({ address: "127.0.0.1", port: served.port }, { metrics: scrapedMetrics(), isReady: () => true, report: () => {} }),
    (thrown) => thrown instanceof Stalled && thrown.code === "AddressInUse" && thrown.message.includes("metrics"),
  );
});
