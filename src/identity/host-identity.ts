import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import { Invalid, messageOf, Refused } from "../api/errors.ts";
import { authorityCertificate, type Issuer, newCertificateKey, serverCertificate } from "./certificate.ts";

/** One start of a host in one pod: what a host's certificate is for. */
export interface HostIdentity {
  readonly podUid: string;
  readonly boot: string;
}

/** A certificate authority: its key, and its certificate in PEM for those who check. */
export interface Authority extends Issuer {
  readonly certificate: string;
}

/** A host's certificate lasts this long; the operator makes the next at half of it. */
export const hostCertificateLifetimeMs = 7 * 24 * 60 * 60 * 1000;

/** How far back a certificate begins, for clocks that are behind. */
const allowedSkewMs = 5 * 60 * 1000;

const authorityLifetimeMs = 10 * 365 * 24 * 60 * 60 * 1000;

/**
 * The name that a host's certificate is made out to: `<boot id>.<pod UID>.host.ambit.internal`. Whoever connects asks TLS for this name, and so reaches that start of that pod
 * or nobody, whatever the address; no client needs a check of its own. Throws `Invalid` (`IdentityMalformed`) for what can be no part of a name.
 */
export const hostServerName = ({ podUid, boot }: HostIdentity): string => {
  for (const part of [podUid, boot]) {
    if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(part)) {
      throw new Invalid("IdentityMalformed", `${JSON.stringify(part.slice(0, 80))} is no pod UID or boot id`);
    }
  }
  return `${boot}.${podUid}.host.ambit.internal`;
};

/** Options of TLS (of `node:tls`, or of undici's `connect`) by which a client reaches exactly this host. `ca` is one or more certificates in PEM. */
export const hostTls = (
  identity: HostIdentity,
  ca: string,
): { readonly ca: string; readonly servername: string; readonly minVersion: "TLSv1.3" } => ({
  ca,
  servername: hostServerName(identity),
  minVersion: "TLSv1.3",
});

export const newAuthority = (commonName: string, now: number): Authority => {
  const key = newCertificateKey();
  return { commonName, key, certificate: authorityCertificate({ commonName, key }, now - allowedSkewMs, now + authorityLifetimeMs) };
};

/** The certificate of a host whose key is `publicKey`. */
export const certifyHost = (authority: Authority, identity: HostIdentity, publicKey: KeyObject, now: number): string => {
  const name = hostServerName(identity);
  return serverCertificate(
    {
      commonName: "ambit host",
      publicKey,
      dnsNames: [name],
      notBefore: now - allowedSkewMs,
      notAfter: now + hostCertificateLifetimeMs,
    },
    authority,
  );
};

/** The certificate of a server with these DNS names, such as the catalogue. */
export const certifyServer = (
  authority: Authority,
  dnsNames: readonly string[],
  publicKey: KeyObject,
  now: number,
  lifetimeMs: number,
): string =>
  serverCertificate(
    { commonName: dnsNames[0] ?? "ambit", publicKey, dnsNames, notBefore: now - allowedSkewMs, notAfter: now + lifetimeMs },
    authority,
  );

/** What a host shows before it has a certificate from the operator: made by itself, so it proves that it holds the key and nothing else. */
export const provisionalCertificate = (key: KeyObject, now: number): string => {
  const commonName = "ambit host without a certificate";
  const times = { notBefore: now - allowedSkewMs, notAfter: now + authorityLifetimeMs };
  return serverCertificate(
    { commonName, publicKey: createPublicKey(key), dnsNames: ["host.ambit.internal"], ...times },
    { commonName, key },
  );
};

/**
 * Judges a certificate that somebody says is this host's: signed by the authority (`ca`: one or more certificates in PEM), made out to this pod and boot id, in force at `now`.
 * Returns when it ends, in milliseconds since the epoch. Throws `Invalid` (`CertificateMalformed`) and `Refused` (`CertificateUntrusted`, `CertificateMisdirected`, `CertificateExpired`).
 */
export const verifyHostCertificate = (pem: string, ca: string, identity: HostIdentity, now: number): number => {
  const certificate = readCertificate(pem);
  const isTrusted = authorities(ca).some((issuer) => certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey));
  if (!isTrusted || certificate.ca) throw new Refused("CertificateUntrusted", "the host's certificate is not signed by Ambit's authority");
  const name = hostServerName(identity);
  if (certificate.checkHost(name, { subject: "never", wildcards: false }) !== name) {
    throw new Refused("CertificateMisdirected", "the host's certificate is for another pod, or another start of it");
  }
  if (now < certificate.validFromDate.getTime() || now >= certificate.validToDate.getTime()) {
    throw new Refused("CertificateExpired", "the host's certificate is not in force now");
  }
  return certificate.validToDate.getTime();
};

/** Throws `Invalid` with code `CertificateMalformed`. */
export const readCertificate = (pem: string): X509Certificate => {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new Invalid("CertificateMalformed", `not a certificate in PEM: ${messageOf(error)}`, undefined, { cause: error });
  }
};

const authorities = (ca: string): X509Certificate[] =>
  (ca.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((pem) => readCertificate(pem));
