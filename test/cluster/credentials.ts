import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { Stalled } from "../../src/api/errors.ts";

/** Files by which an API server and its clients know each other. */
export interface Credentials {
  /** The API server's certificate, which signs itself: its clients trust exactly this one. */
  readonly certificate: string;
  readonly key: string;
  readonly serviceAccountKey: string;
  readonly serviceAccountPublicKey: string;
  /** Tokens as `--token-auth-file` reads them. */
  readonly tokens: string;
  /** The token of `admin`, in `system:masters`. Random, since the API server's port can be reached by every user of the machine. */
  readonly adminToken: string;
}

/** Makes them in that folder, or takes those that are there. Throws `Stalled` with code `OpensslMissing`. */
export const makeCredentials = async (folder: string, names: readonly string[]): Promise<Credentials> => {
  const files = {
    certificate: join(folder, "api.crt"),
    key: join(folder, "api.key"),
    serviceAccountKey: join(folder, "service-account.key"),
    serviceAccountPublicKey: join(folder, "service-account.pub"),
    tokens: join(folder, "tokens.csv"),
  };
  // Written last.
  if (existsSync(files.tokens)) {
    const adminToken = (await readFile(files.tokens, "utf8")).split(",")[0] ?? "";
    return { ...files, adminToken };
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await selfSigned(files.certificate, files.key, names);
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await writeFile(files.serviceAccountKey, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  await writeFile(files.serviceAccountPublicKey, publicKey.export({ type: "spki", format: "pem" }));
  const adminToken = randomBytes(24).toString("hex");
  await writeFile(files.tokens, `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 });
  return { ...files, adminToken };
};

/** Node signs no certificates. */
const selfSigned = async (certificate: string, key: string, names: readonly string[]): Promise<void> => {
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const about = ["-subj", "/CN=kube-apiserver", "-days", "3650", "-addext", `subjectAltName=${names.join(",")}`];
  await promisify(execFile)("openssl", ["req", "-x509", ...curve, ...about, "-keyout", key, "-out", certificate]).catch(
    (thrown: unknown) => {
      throw new Stalled("OpensslMissing", "`openssl` could not make the API server's certificate: install OpenSSL", { cause: thrown });
    },
  );
};

/** Writes a kubeconfig for that server. */
export const writeKubeconfig = async (path: string, server: string, credentials: Credentials): Promise<void> => {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "test", cluster: { server, "certificate-authority-data": (await readFile(credentials.certificate)).toString("base64") } },
    ],
    users: [{ name: "admin", user: { token: credentials.adminToken } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
};
