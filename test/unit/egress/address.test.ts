import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusedAddress } from "../../../src/egress/address.ts";

describe("addresses that may be dialled", () => {
  for (const address of ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]) {
    it(address, () => assert.equal(isRefusedAddress(address), null));
  }
});

describe("addresses that are refused", () => {
  const refused: Record<string, RegExp> = {
    "0.0.0.0": /unspecified/,
    "0.1.2.3": /unspecified/,
    "127.0.0.1": /loopback/,
    "127.255.255.254": /loopback/,
    "10.1.2.3": /private/,
    "172.16.0.1": /private/,
    "192.168.0.1": /private/,
    "100.64.0.1": /shared/,
    "169.254.169.254": /link-local/,
    "168.63.129.16": /platform/,
    "192.0.0.8": /reserved/,
    "192.0.2.1": /documentation/,
    "198.51.100.1": /documentation/,
    "203.0.113.1": /documentation/,
    "198.18.0.1": /reserved|benchmarking/,
    "224.0.0.1": /multicast/,
    "240.0.0.1": /reserved/,
    "255.255.255.255": /broadcast/,
    "::": /unspecified/,
    "::1": /loopback/,
    "::7f00:1": /global/,
    "::ffff:127.0.0.1": /loopback address \(127\.0\.0\.1\) written as IPv6/,
    "::ffff:a9fe:a9fe": /link-local/,
    "64:ff9b::7f00:1": /loopback/,
    "64:ff9b:1::7f00:1": /NAT64/,
    "2002:7f00:1::": /loopback/,
    "2002:a00:1::": /private/,
    "2001::1": /Teredo/,
    "2001:db8::1": /documentation/,
    "3fff::1": /documentation/,
    "fe80::1": /link-local/,
    "fe80::1%eth0": /not an IP address/,
    "fec0::1": /reserved/,
    "fc00::1": /private/,
    "fd00:ec2::254": /private/,
    "ff02::1": /multicast/,
    "5f00::1": /global|reserved/,
    localhost: /not an IP address/,
    "0177.0.0.1": /not an IP address/,
    "2130706433": /not an IP address/,
    "": /not an IP address/,
  };
  for (const [address, reason] of Object.entries(refused)) {
    it(`${address || "nothing"}: ${reason.source}`, () => assert.match(isRefusedAddress(address) ?? "dialled", reason));
  }

  it("hold however an IPv4 address is written as IPv6", () => {
    const hostile = fc.constantFrom("127.0.0.1", "169.254.169.254", "10.0.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "168.63.129.16");
    const wrapped = fc.constantFrom(
      (address: string) => `::ffff:${address}`,
      (address: string) => `64:ff9b::${address}`,
      (address: string) => `::${address}`,
      (address: string) => `2002:${hexOf(address)}::1`,
    );
    fc.assert(fc.property(hostile, wrapped, (address, wrap) => assert.notEqual(isRefusedAddress(wrap(address)), null)));
  });
});

const hexOf = (address: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
};

describe("what an installation may change", () => {
  it("private ranges, only those configured", () => {
    const policy = { privateRanges: ["10.0.0.0/8", "fd00::/8"] };
    assert.equal(isRefusedAddress("10.1.2.3", policy), null);
    assert.equal(isRefusedAddress("fd00::1", policy), null);
    assert.match(isRefusedAddress("192.168.0.1", policy) ?? "", /private/);
  });

  it("a private range never opens loopback or link-local", () => {
    const policy = { privateRanges: ["0.0.0.0/0", "::/0"] };
    for (const address of ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "168.63.129.16", "224.0.0.1"]) {
      assert.notEqual(isRefusedAddress(address, policy), null, address);
    }
  });

  it("a refused range wins over an allowed one, also where it is written as IPv6", () => {
    const policy = { privateRanges: ["10.0.0.0/8"], refusedRanges: ["10.96.0.0/12"] };
    assert.match(isRefusedAddress("10.96.0.1", policy) ?? "", /refused range/);
    assert.match(isRefusedAddress("::ffff:10.96.0.1", policy) ?? "", /refused range/);
    assert.equal(isRefusedAddress("10.1.0.1", policy), null);
  });

  it("a range that is none is an error with its text", () => {
    assert.throws(() => isRefusedAddress("8.8.8.8", { refusedRanges: ["ten"] }), /"ten" is not an address range/);
  });
});
