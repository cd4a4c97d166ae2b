import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { publicAddressesOnly } from "../../../src/egress/address.ts";
import { systemResolver, tableResolver } from "../../../src/egress/resolver.ts";
import { targetOf } from "../../../src/egress/target.ts";

const target = targetOf("https", "api.example.com");

describe("the table's resolver", () => {
  it("gives the addresses of the host and port, and asks for the table each time", async () => {
    let table = new Map([["api.example.com:443", ["8.8.8.8", "2606:4700::1111"]]]);
    const dial = tableResolver(() => table);
    assert.deepEqual(await dial(target), [
      { address: "8.8.8.8", port: 443 },
      { address: "2606:4700::1111", port: 443 },
    ]);
    table = new Map();
    await assert.rejects(dial(target), { code: "HostNotInTable" });
  });

  it("dials an address that a range of the table holds, on the range's port alone", async () => {
    const ranges = ["8.8.0.0/16:53", "2606:4700::/32:53"].map((key) => [key, [key.slice(0, -3)]] as const);
    const dial = tableResolver(() => new Map(ranges));
    assert.deepEqual(await dial(targetOf("http", "8.8.4.4:53")), [{ address: "8.8.4.4", port: 53 }]);
    assert.deepEqual(await dial(targetOf("http", "[2606:4700::1]:53")), [{ address: "2606:4700::1", port: 53 }]);
    for (const authority of ["8.9.0.1:53", "8.8.4.4:153", "8.8.4.4", "[2607::1]:53", "dns.test:53"]) {
      await assert.rejects(dial(targetOf("http", authority)), { code: "HostNotInTable" }, authority);
    }
  });

  it("does not take another port's addresses", async () => {
    const dial = tableResolver(() => new Map([["api.example.com:8443", ["8.8.8.8"]]]));
    await assert.rejects(dial(target), { code: "HostNotInTable" });
  });
});

describe("the system's resolver", () => {
  const answering = (...addresses: string[]) => systemResolver(async () => addresses, publicAddressesOnly);

  it("leaves out what must not be dialled", async () => {
    assert.deepEqual(await answering("127.0.0.1", "8.8.8.8")(target), [{ address: "8.8.8.8", port: 443 }]);
  });

  for (const address of ["127.0.0.1", "169.254.169.254", "::1", "10.0.0.1"]) {
    it(`refuses a name that resolves to ${address}`, async () => {
      await assert.rejects(answering(address)(target), { code: "AddressRefused", message: /api\.example\.com/ });
    });
  }

  it("judges an address that is written as the host, and looks nothing up", async () => {
    const dial = systemResolver(() => assert.fail("looked up"), publicAddressesOnly);
    await assert.rejects(dial(targetOf("http", "[::ffff:7f00:1]")), { code: "AddressRefused" });
    assert.deepEqual(await dial(targetOf("http", "8.8.8.8")), [{ address: "8.8.8.8", port: 80 }]);
  });

  it("says which name it could not resolve", async () => {
    await assert.rejects(answering()(target), { code: "HostNotResolved", message: /api\.example\.com/ });
    const failing = systemResolver(() => Promise.reject(new Error("SERVFAIL")), publicAddressesOnly);
    await assert.rejects(failing(target), { code: "HostNotResolved" });
  });

  it("dials an override as it is, for its host and port alone", async () => {
    const dial = systemResolver(async () => ["8.8.8.8"], publicAddressesOnly, {
      "api.example.com:443": "127.0.0.1:8123",
      "v6.test:80": "[::1]:99",
    });
    assert.deepEqual(await dial(target), [{ address: "127.0.0.1", port: 8123 }]);
    assert.deepEqual(await dial(targetOf("http", "v6.test")), [{ address: "::1", port: 99 }]);
    assert.deepEqual(await dial(targetOf("http", "api.example.com")), [{ address: "8.8.8.8", port: 80 }]);
  });

  for (const [from, to] of [
    ["api.example.com", "127.0.0.1:80"],
    ["api.example.com:80", "127.0.0.1"],
    ["api.example.com:80", "localhost:80"],
  ] as const) {
    it(`refuses the override ${from}=${to}`, () => {
      assert.throws(() => systemResolver(async () => [], publicAddressesOnly, { [from]: to }), { code: "HostOverrideInvalid" });
    });
  }
});

describe("the authority of a request", () => {
  for (const authority of [
    "",
    "u@example.com",
    "example.com.",
    "a..b",
    "example.com:0",
    "example.com:99999",
    "127.1",
    "0x7f.1",
    "ex ample.com",
    "[::1",
    "*.example.com",
  ]) {
    it(`${JSON.stringify(authority)} is refused`, () => assert.throws(() => targetOf("http", authority), { code: "AuthorityInvalid" }));
  }
});
