import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { messageOf, Stalled } from "../../api/errors.ts";
import type { SignedDocument } from "../../api/host.ts";
import { type Authority, newAuthority } from "../../identity/host-identity.ts";
import { publicKeyText, type RootDocument, signDocument } from "../../identity/signed-document.ts";

/** What everything else hangs on: the key that signs deliveries, and the authorities for hosts and for the catalogue. Made once and kept. */
export interface RootKeys {
  /** Ed25519. */
  readonly root: KeyObject;
  readonly hosts: Authority;
  readonly catalogue: Authority;
}

export const newRootKeys = (now: number): RootKeys => ({
  root: generateKeyPairSync("ed25519").privateKey,
  hosts: newAuthority("Ambit hosts", now),
  catalogue: newAuthority("Ambit catalogue", now),
});

/** As `HostConfig.rootKey` wants it. */
export const rootPublicKey = ({ root }: RootKeys): string => publicKeyText(root);

/** A document under the root key's signature. */
export const signedByRoot = ({ root }: RootKeys, document: RootDocument): SignedDocument => signDocument(root, document);

/** Entries of the Secret that keeps the root keys: keys as PKCS8, all in PEM. */
export type RootEntries = Readonly<Record<"root.key" | "hosts-ca.key" | "hosts-ca.crt" | "catalogue-ca.key" | "catalogue-ca.crt", string>>;

export const rootEntries = ({ root, hosts, catalogue }: RootKeys): RootEntries => ({
  "root.key": pkcs8(root),
  "hosts-ca.key": pkcs8(hosts.key),
  "hosts-ca.crt": hosts.certificate,
  "catalogue-ca.key": pkcs8(catalogue.key),
  "catalogue-ca.crt": catalogue.certificate,
});

/** The inverse. Throws `Stalled` (`RootKeysUnusable`): new ones would cut off every host that runs, so a person decides. */
export const readRootEntries = (entries: Readonly<Record<string, string>>): RootKeys => {
  const authority = (name: "hosts" | "catalogue", commonName: string): Authority => {
    const key = privateKey(entries, `${name}-ca.key`, "ec");
    return { commonName, key, certificate: certificateOf(entries, `${name}-ca.crt`, key) };
  };
  return {
    root: privateKey(entries, "root.key", "ed25519"),
    hosts: authority("hosts", "Ambit hosts"),
    catalogue: authority("catalogue", "Ambit catalogue"),
  };
};

export const pkcs8 = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

const entry = (entries: Readonly<Record<string, string>>, name: string): string => {
  const text = entries[name];
  if (text === undefined) throw unusable(`has no entry ${name}`);
  return text;
};

const privateKey = (entries: Readonly<Record<string, string>>, name: string, type: "ec" | "ed25519"): KeyObject => {
  const text = entry(entries, name);
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch (error) {
    throw unusable(`has no private key in ${name}: ${messageOf(error)}`);
  }
  if (key.asymmetricKeyType !== type) throw unusable(`has a key of another kind in ${name}`);
  return key;
};

const certificateOf = (entries: Readonly<Record<string, string>>, name: string, key: KeyObject): string => {
  const text = entry(entries, name);
  let isOfKey: boolean;
  try {
    isOfKey = new X509Certificate(text).checkPrivateKey(key);
  } catch (error) {
    throw unusable(`has no certificate in ${name}: ${messageOf(error)}`);
  }
  if (!isOfKey) throw unusable(`has a certificate of another key in ${name}`);
  return text;
};

const unusable = (why: string): Stalled =>
  new Stalled(
    "RootKeysUnusable",
    `the Secret of Ambit's root keys ${why}; restore it, or delete it and then all pods of tools, which only know the old key`,
  );
