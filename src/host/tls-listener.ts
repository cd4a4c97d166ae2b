import type { Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:https";
import { Refused } from "../api/errors.ts";
import { newCertificateKey } from "../identity/certificate.ts";
import { provisionalCertificate, readCertificate } from "../identity/host-identity.ts";
import type { ServeHttp } from "./server.ts";

/** Each takes some 50 KB, whoever opened it. A replica of the catalogue keeps at most 64. */
const maxConnections = 1024;

/**
 * TLS under a key of this start of the host, which never leaves its memory. Until a certificate was delivered it shows one made by itself: that proves the
 * key to the operator, lets the kubelet ask for readiness, and nobody else believes it.
 */
export class TlsListener {
  readonly #key = newCertificateKey();
  readonly #servers: Server[] = [];

  readonly serve: ServeHttp = (options, listener): HttpServer => {
    const certificate = provisionalCertificate(this.#key, Date.now());
    const server = createServer({ ...options, ...this.#context(certificate), handshakeTimeout: 10_000 }, listener);
    server.maxConnections = maxConnections;
    this.#servers.push(server);
    return server;
  };

  /** New connections get this certificate; those that are open go on. Throws `Invalid` (`CertificateMalformed`) and `Refused` (`CertificateMisdirected`). */
  readonly present = (certificate: string): void => {
    if (!readCertificate(certificate).checkPrivateKey(this.#key)) {
      throw new Refused("CertificateMisdirected", "the certificate is for another key than this host's");
    }
    for (const server of this.#servers) server.setSecureContext(this.#context(certificate));
  };

  #context(certificate: string) {
    return { key: this.#key.export({ type: "pkcs8", format: "pem" }), cert: certificate, minVersion: "TLSv1.3" } as const;
  }
}
