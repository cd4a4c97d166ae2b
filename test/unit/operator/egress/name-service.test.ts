import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type NameService, nameService } from "../../../../src/operator/egress/name-service.ts";
import { type DnsServer, startDnsServer } from "../../../support/dns-server.ts";

describe("asking DNS", () => {
  let server: DnsServer;
  let ask: NameService;

  before(async () => {
    server = await startDnsServer({
      "both.test": { addresses: ["8.8.8.8", "1.1.1.1", "2606:4700::1111"], ttl: 42 },
      "v6.test": { addresses: ["2606:4700::1111"], ttl: 7 },
      "none.test": { addresses: [], ttl: 0 },
      "broken.test": "SERVFAIL",
      "silent.test": "silent",
    });
    ask = nameService({ servers: [server.address], timeoutMs: 100, tries: 1 });
  });

  after(() => server[Symbol.asyncDispose]());

  it("gives the addresses of both families with their TTLs", async () => {
    const found = (await ask("both.test")).map(({ address, ttl }) => `${address} ${ttl}`).sort();
    assert.deepEqual(found, ["1.1.1.1 42", "2606:4700::1111 42", "8.8.8.8 42"]);
  });

  it("gives those of one family where the other has none", async () => {
    assert.deepEqual(await ask("v6.test"), [{ address: "2606:4700::1111", ttl: 7 }]);
  });

  it("gives nothing for a name that has no address or does not exist", async () => {
    assert.deepEqual(await ask("none.test"), []);
    assert.deepEqual(await ask("absent.test"), []);
  });

  it("fails where nobody could tell", async () => {
    await assert.rejects(ask("broken.test"), { code: "NameServiceFailed", message: /ESERVFAIL/ });
    await assert.rejects(ask("silent.test"), { code: "NameServiceFailed", message: /ETIMEOUT/ });
  });

  it("asks for the name as it is, without a search domain", async () => {
    server.asked.length = 0;
    await ask("absent.test");
    assert.deepEqual([...new Set(server.asked)].sort(), ["A absent.test", "AAAA absent.test"]);
  });
});
