import assert from "node:assert/strict";
import { createPublicKey, X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import type { AmbitError } from "../../../src/api/errors.ts";
import { newCertificateKey } from "../../../src/identity/certificate.ts";
import {
  certifyHost,
  certifyServer,
  hostCertificateLifetimeMs,
  hostServerName,
  newAuthority,
  provisionalCertificate,
  verifyHostCertificate,
} from "../../../src/identity/host-identity.ts";

const now = Date.UTC(2026, 0, 1);
const day = 24 * 60 * 60 * 1000;
const authority = newAuthority("Ambit hosts", now);
const identity = { podUid: "3a9b8633-4c9a-492a-bd5e-02b53a5ddfcf", boot: "998b7d8a-dd2b-4302-914b-7a5ef7aeb11b" };
const key = newCertificateKey();
const certificate = certifyHost(authority, identity, createPublicKey(key), now);

/** What OpenSSL reads of it: we only write certificates. */
const read = (pem: string) => new X509Certificate(pem);

describe("the certificate of a host", () => {
  it("says to OpenSSL what it should", () => {
    const found = read(certificate);
    assert.equal(found.subject, "CN=ambit host");
    assert.equal(found.issuer, "CN=Ambit hosts");
    assert.equal(found.subjectAltName, `DNS:${identity.boot}.${identity.podUid}.host.ambit.internal`);
    assert.equal(found.ca, false);
    assert.deepEqual(found.keyUsage, ["1.3.6.1.5.5.7.3.1"]); // serverAuth
    assert.equal(found.validToDate.getTime(), now + hostCertificateLifetimeMs);
    assert.ok(found.checkPrivateKey(key));
    assert.ok(found.verify(createPublicKey(authority.key)));
    assert.ok(found.checkIssued(read(authority.certificate)));
  });

  it("holds for its pod and start until it ends", () => {
    assert.equal(verifyHostCertificate(certificate, authority.certificate, identity, now), now + hostCertificateLifetimeMs);
  });

  it("holds under one of several authorities", () => {
    const both = `${newAuthority("Ambit hosts", now).certificate}${authority.certificate}`;
    assert.equal(verifyHostCertificate(certificate, both, identity, now), now + hostCertificateLifetimeMs);
  });

  const hosts = (change: Partial<typeof identity>) => certifyHost(authority, { ...identity, ...change }, createPublicKey(key), now);
  const altered = (): string => {
    const der = read(certificate).raw;
    const at = der.indexOf(identity.boot);
    der.write("0", at);
    return `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
  };
  const cases: Record<string, { pem: string; at?: number; ca?: string; code: string }> = {
    "of another pod": { pem: hosts({ podUid: "5d0e6c53-7d3f-4f0b-9a55-1f2f3a4b5c6d" }), code: "CertificateMisdirected" },
    "of another start": { pem: hosts({ boot: "5d0e6c53-7d3f-4f0b-9a55-1f2f3a4b5c6d" }), code: "CertificateMisdirected" },
    "by an authority of the same name": {
      pem: certificate,
      ca: newAuthority("Ambit hosts", now).certificate,
      code: "CertificateUntrusted",
    },
    "by nobody": { pem: certificate, ca: "", code: "CertificateUntrusted" },
    "that a host made itself": { pem: provisionalCertificate(key, now), code: "CertificateUntrusted" },
    "that is the authority's own": { pem: authority.certificate, code: "CertificateUntrusted" },
    "whose name was changed": { pem: altered(), code: "CertificateUntrusted" },
    "that has ended": { pem: certificate, at: now + hostCertificateLifetimeMs, code: "CertificateExpired" },
    "that has not begun": { pem: certificate, at: now - day, code: "CertificateExpired" },
    "of a server by that authority": {
      pem: certifyServer(authority, ["*.host.ambit.internal"], createPublicKey(key), now, day),
      code: "CertificateMisdirected",
    },
    "that is none": { pem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", code: "CertificateMalformed" },
    "that is empty": { pem: "", code: "CertificateMalformed" },
  };
  for (const [name, { pem, at = now, ca = authority.certificate, code }] of Object.entries(cases)) {
    it(`is refused as one ${name}`, () => {
      assert.throws(
        () => verifyHostCertificate(pem, ca, identity, at),
        (error: AmbitError) => error.code === code,
      );
    });
  }

  it("can't be made for what is no part of a name", () => {
    for (const podUid of ["", "a.b", "*", "-a", "A", "a".repeat(64), "a\u0000"]) {
      assert.throws(
        () => hostServerName({ ...identity, podUid }),
        (error: AmbitError) => error.code === "IdentityMalformed",
      );
    }
  });
});

describe("times in a certificate", () => {
  it("are read alike before 2050 and after it", () => {
    for (const year of [2026, 2049, 2050, 2150]) {
      const begins = Date.UTC(year, 5, 1);
      const found = read(provisionalCertificate(key, begins));
      assert.equal(found.validFromDate.getTime(), begins - 5 * 60 * 1000);
    }
  });
});

describe("an authority", () => {
  it("signs servers and no other authority", () => {
    const found = read(authority.certificate);
    assert.equal(found.ca, true);
    assert.ok(found.verify(createPublicKey(authority.key)));
  });
});
