import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { allowedHostText, allows, hostWithin, parseAllowedHost } from "../../../src/egress/allowed-host.ts";
import { targetOf } from "../../../src/egress/target.ts";

describe("an allowed host", () => {
  const read: Record<string, string> = {
    "api.example.com": "api.example.com",
    "API.Example.COM:8443": "api.example.com:8443",
    "https://api.example.com": "https://api.example.com",
    "HTTP://api.example.com:80": "http://api.example.com:80",
    "*.example.com": "*.example.com",
    "https://*.example.com:8443": "https://*.example.com:8443",
    "bücher.example": "xn--bcher-kva.example",
    "192.0.2.7:443": "192.0.2.7:443",
    "10.0.0.0/8:5432": "10.0.0.0/8:5432",
    "2001:DB8:0::1": "[2001:db8::1]",
    "[2001:db8::1]:8443": "[2001:db8::1]:8443",
    "[2001:db8::]/32:443": "[2001:db8::]/32:443",
    "db.prod.svc:5432": "db.prod.svc:5432",
    localhost: "localhost",
  };
  for (const [entry, text] of Object.entries(read)) {
    it(`${entry} reads as ${text}`, () => assert.equal(allowedHostText(parseAllowedHost(entry)), text));
  }

  const refused: Record<string, RegExp> = {
    "": /there is no host/,
    "*": /every host/,
    "https://*": /every host/,
    "*foo.com": /wildcard/,
    "api.*.com": /wildcard/,
    "*.": /there is no host/,
    "*.192.0.2.7": /not before an address/,
    "example.com.": /trailing dot/,
    "a..b": /label is empty/,
    ".example.com": /label is empty/,
    "http://u:p@example.com": /user info/,
    "example.com/": /path or query/,
    "example.com?q": /path or query/,
    "example.com#f": /path or query/,
    "ftp://example.com": /scheme must be http or https/,
    "example.com:": /not a port/,
    "example.com:0": /not a port/,
    "example.com:65536": /not a port/,
    "example.com:080": /not a port/,
    "example.com:http": /not a port/,
    "exa mple.com": /no host name has/,
    "exam_ple.com": /letters, digits/,
    "-a.com": /letters, digits/,
    "127.1": /another spelling of the address 127\.0\.0\.1/,
    "0x7f000001": /another spelling/,
    "2130706433": /another spelling/,
    "1.2.3.4.5": /not a host name|ends in a number/,
    "10.0.0.0/8": /needs a port/,
    "10.0.0.0/33:80": /more bits/,
    "[::1": /no host name has/,
    "[fe80::1%eth0]:80": /not an IPv6 address/,
    [`${"a".repeat(64)}.com`]: /longer than 63|not a host name/,
    [`${"a.".repeat(200)}com`]: /longer than 300/,
  };
  for (const [entry, reason] of Object.entries(refused)) {
    it(`${JSON.stringify(entry.slice(0, 40))} is refused with the entry and the reason`, () => {
      assert.throws(
        () => parseAllowedHost(entry),
        (error: unknown) =>
          error instanceof Invalid &&
          error.code === "AllowedHostInvalid" &&
          reason.test(error.message) &&
          error.message.includes(JSON.stringify(entry).slice(1, 30).replace(/"$/, "")),
      );
    });
  }

  it("`*` is read where the installation permits it", () => assert.equal(parseAllowedHost("*", { allowAny: true }).hosts.kind, "any"));

  it("reads its own canonical text as itself", () => {
    const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/);
    const host = fc.oneof(
      fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join(".")),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    );
    const entry = fc.tuple(fc.constantFrom("", "http://", "https://"), host, fc.option(fc.integer({ min: 1, max: 65535 })));
    fc.assert(
      fc.property(entry, ([scheme, name, port]) => {
        const text = allowedHostText(parseAllowedHost(`${scheme}${name}${port === null ? "" : `:${port}`}`));
        assert.equal(allowedHostText(parseAllowedHost(text)), text);
      }),
      { numRuns: 300 },
    );
  });

  it("refuses or reads any text, and never fails otherwise", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        try {
          parseAllowedHost(text, { allowAny: true });
        } catch (error) {
          assert.ok(error instanceof Invalid);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("what entries allow", () => {
  const cases: Record<string, { allowed: string[]; request: [scheme: "http" | "https", authority: string]; verdict: boolean }> = {
    "nothing is allowed without entries": { allowed: [], request: ["https", "example.com"], verdict: false },
    "a host without a scheme takes https": { allowed: ["example.com"], request: ["https", "example.com"], verdict: true },
    "a host without a scheme takes http": { allowed: ["example.com"], request: ["http", "example.com"], verdict: true },
    "a host without a port means its scheme's default port": {
      allowed: ["example.com"],
      request: ["https", "example.com:8443"],
      verdict: false,
    },
    "the default port of the other scheme is not its own": {
      allowed: ["example.com"],
      request: ["https", "example.com:80"],
      verdict: false,
    },
    "a written port matches the effective port": { allowed: ["example.com:443"], request: ["https", "example.com"], verdict: true },
    "a written port takes either scheme": { allowed: ["example.com:443"], request: ["http", "example.com:443"], verdict: true },
    "a written port excludes the default one": { allowed: ["example.com:8443"], request: ["https", "example.com"], verdict: false },
    "https with port 443 is pinned to https": {
      allowed: ["https://example.com:443"],
      request: ["http", "example.com:443"],
      verdict: false,
    },
    "a scheme excludes the other": { allowed: ["https://example.com"], request: ["http", "example.com"], verdict: false },
    "names are compared without case": { allowed: ["Example.com"], request: ["https", "EXAMPLE.com"], verdict: true },
    "a name covers nothing below it": { allowed: ["example.com"], request: ["https", "a.example.com"], verdict: false },
    "a wildcard covers one level": { allowed: ["*.example.com"], request: ["https", "a.example.com"], verdict: true },
    "a wildcard covers any depth": { allowed: ["*.example.com"], request: ["https", "a.b.c.example.com"], verdict: true },
    "a wildcard does not cover its apex": { allowed: ["*.example.com"], request: ["https", "example.com"], verdict: false },
    "a wildcard does not cover a name that merely ends alike": {
      allowed: ["*.example.com"],
      request: ["https", "badexample.com"],
      verdict: false,
    },
    "an address is compared by value": { allowed: ["[2001:db8::1]"], request: ["https", "[2001:DB8:0:0::1]"], verdict: true },
    "a range covers its addresses": { allowed: ["10.0.0.0/8:80"], request: ["http", "10.9.8.7"], verdict: true },
    "a range covers no name": { allowed: ["0.0.0.0/0:80"], request: ["http", "example.com"], verdict: false },
    "a range covers no address of the other family": { allowed: ["0.0.0.0/0:80"], request: ["http", "[::ffff:1.2.3.4]"], verdict: false },
  };
  for (const [rule, { allowed, request, verdict }] of Object.entries(cases)) {
    it(rule, () => {
      const entries = allowed.map((entry) => parseAllowedHost(entry));
      assert.equal(allows(entries, targetOf(...request)), verdict);
    });
  }
});

describe("reach of one entry within others", () => {
  const cases: [entry: string, within: string[], verdict: boolean][] = [
    ["example.com", ["example.com"], true],
    ["example.com", [], false],
    ["EXAMPLE.com", ["example.com"], true],
    ["https://example.com", ["example.com"], true],
    ["example.com", ["https://example.com"], false],
    ["example.com", ["https://example.com", "http://example.com"], true],
    ["https://example.com:443", ["example.com"], true],
    ["example.com:443", ["example.com"], false],
    ["example.com:443", ["example.com", "http://example.com:443"], true],
    ["example.com:8443", ["example.com"], false],
    ["a.example.com", ["*.example.com"], true],
    ["example.com", ["*.example.com"], false],
    ["*.a.example.com", ["*.example.com"], true],
    ["*.example.com", ["*.a.example.com"], false],
    ["*.example.com", ["*.ample.com"], false],
    ["10.1.0.0/16:80", ["10.0.0.0/8:80"], true],
    ["10.0.0.0/8:80", ["10.1.0.0/16:80"], false],
    ["10.1.2.3:80", ["10.0.0.0/8:80"], true],
    ["*", ["example.com"], false],
    ["example.com", ["*"], true],
    ["not a host", ["*"], false],
    ["example.com", ["not a host"], false],
  ];
  for (const [entry, within, verdict] of cases) {
    it(`${entry} is ${verdict ? "" : "not "}within ${within.join(" + ") || "nothing"}`, () =>
      assert.equal(hostWithin(entry, within), verdict));
  }

  it("admits every target that the inner entry admits", () => {
    const entry = fc.constantFrom("a.b", "*.b", "http://a.b", "https://a.b:443", "a.b:80", "*.a.b:80", "https://*.b", "c.a.b", "*");
    const scheme = fc.constantFrom<"http" | "https">("http", "https");
    const authority = fc.constantFrom("a.b", "c.a.b", "b", "a.b:80", "a.b:443", "c.a.b:80");
    fc.assert(
      fc.property(entry, entry, scheme, authority, (inner, outer, how, where) => {
        const [one, two] = [inner, outer].map((text) => parseAllowedHost(text, { allowAny: true }));
        if (one === undefined || two === undefined || !hostWithin(one, two)) return;
        const target = targetOf(how, where);
        assert.ok(!allows([one], target) || allows([two], target));
      }),
      { numRuns: 500 },
    );
  });
});
