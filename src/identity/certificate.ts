import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { bits, type Der, objectId, octets, sequence, set, tagged, time, truth, unsigned, utf8 } from "./der.ts";

/** Whose certificate it is, by the only name that Ambit gives: a common name, for people; what counts are the DNS names. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly dnsNames: readonly string[];
  /** Milliseconds since the epoch; a certificate counts in seconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/** A key that signs certificates, and the name it does so under. */
export interface Issuer {
  readonly commonName: string;
  readonly key: KeyObject;
}

/** A key for certificates: ECDSA on P-256, which every client of TLS knows. */
export const newCertificateKey = (): KeyObject => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

/** A certificate of a server, in PEM, signed by `issuer`. Both keys are of `newCertificateKey`. */
export const serverCertificate = (request: CertificateRequest, issuer: Issuer): string =>
  signed(request, issuer, [
    extension(ids.basicConstraints, sequence(), "critical"),
    extension(ids.keyUsage, bits(Buffer.from([0x80]), 7), "critical"), // digitalSignature
    extension(ids.extendedKeyUsage, sequence(objectId(ids.serverAuth))),
    extension(ids.subjectAltName, sequence(...request.dnsNames.map((name) => tagged(0x82, Buffer.from(name, "ascii"))))),
    authorityKeyId(issuer.key),
  ]);

/** A certificate of an authority that signs servers' certificates and no other authority's; signed by itself. */
export const authorityCertificate = ({ commonName, key }: Issuer, notBefore: number, notAfter: number): string =>
  signed({ commonName, publicKey: createPublicKey(key), dnsNames: [], notBefore, notAfter }, { commonName, key }, [
    extension(ids.basicConstraints, sequence(truth, unsigned(Buffer.from([0]))), "critical"),
    extension(ids.keyUsage, bits(Buffer.from([0x04]), 2), "critical"), // keyCertSign
    extension(ids.subjectKeyId, octets(keyId(createPublicKey(key)))),
  ]);

const ids = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
};

/** RFC 5280, 4.1: version 3, since it has extensions; a serial number that nobody can foretell. */
const signed = (request: CertificateRequest, issuer: Issuer, extensions: readonly Der[]): string => {
  const algorithm = sequence(objectId(ids.ecdsaWithSha256));
  const content = sequence(
    tagged(0xa0, unsigned(Buffer.from([2]))),
    unsigned(randomBytes(16)),
    algorithm,
    nameOf(issuer.commonName),
    sequence(time(request.notBefore), time(request.notAfter)),
    nameOf(request.commonName),
    request.publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  );
  const certificate = sequence(content, algorithm, bits(sign("sha256", content, issuer.key)));
  const lines =
    Buffer.from(certificate)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
};

const nameOf = (commonName: string): Der => sequence(set(sequence(objectId(ids.commonName), utf8(commonName))));

const extension = (id: string, value: Der, importance?: "critical"): Der =>
  sequence(objectId(id), ...(importance === "critical" ? [truth] : []), octets(value));

const authorityKeyId = (key: KeyObject): Der => extension(ids.authorityKeyId, sequence(tagged(0x80, keyId(createPublicKey(key)))));

/** Any value will do that is the same for the same key (RFC 7093, 2, method 4). */
const keyId = (key: KeyObject): Buffer =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
