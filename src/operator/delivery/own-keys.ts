import { createPublicKey, X509Certificate } from "node:crypto";
import type { KeySet } from "../../api/host.ts";
import { newCertificateKey } from "../../identity/certificate.ts";
import { certifyServer } from "../../identity/host-identity.ts";
import { isConflict, isNotFound } from "../../kube/api-error.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type Clock, pause } from "../../kube/clock.ts";
import type { ClusterObject } from "../../kube/object.ts";
import { configMaps, secrets } from "../../kube/resource-types.ts";
import {
  publicTicketKeys,
  readTicketKeys,
  rotatedTicketKeys,
  type TicketSigningKey,
  ticketKeysEntry,
  writeTicketKeys,
} from "../../tickets/ticket-keys.ts";
import type { OperatorContext, Runs } from "../context.ts";
import { labels, managedByAmbit, ownObjects } from "../names.ts";
import { newRootKeys, pkcs8, type RootKeys, readRootEntries, rootEntries, rootPublicKey } from "./keyring.ts";

/** Name of the Service that agents reach the catalogue by, in Ambit's namespace. */
export const catalogueService = "ambit-catalogue";

/** How often the keys are looked at: whether one is to be made, or somebody deleted them. */
const lookEveryMs = 60_000;

const catalogueCertificateMs = 90 * 24 * 60 * 60 * 1000;

/** Ambit's keys, kept in Secrets of its own namespace, and made and rotated while the operator leads. */
export interface Keyring extends Runs {
  readonly root: RootKeys;
  /** SPKI DER in base64: what hosts are started with. */
  readonly rootPublicKey: string;
  /** Public halves of the keys that sign tickets now and next. */
  ticketKeys(): KeySet["keys"];
  /** Hears of each change of `ticketKeys`. The returned function ends that. */
  onTicketKeys(listener: () => void): () => void;
  /** A time to sign a document with, in milliseconds since the epoch: now, and later than any given before. */
  readonly signingTime: () => number;
}

interface Secret extends ClusterObject {
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

type KeyringContext = Pick<OperatorContext, "client" | "clock" | "namespace" | "log">;

/** Reads the keys, and makes those that there are not. Throws as requests do, and `Stalled` (`RootKeysUnusable`), `Invalid` (`TicketKeysMalformed`). */
export const openKeyring = async (context: KeyringContext, signal: AbortSignal): Promise<Keyring> => {
  const { client, clock, namespace, log } = context;
  const root = readRootEntries(await kept(context, ownObjects.root, () => rootEntries(newRootKeys(clock.now())), signal));
  let ticketKeys = await currentTicketKeys(context, signal);
  const listeners = new Set<() => void>();
  let lastTime = 0;

  const look = async (signal: AbortSignal): Promise<void> => {
    const before = ticketKeys.map(({ kid }) => kid).join();
    ticketKeys = await currentTicketKeys(context, signal);
    if (ticketKeys.map(({ kid }) => kid).join() !== before) for (const listener of listeners) listener();
    await publishAuthorities(context, root, signal);
    await renewCatalogueCertificate(client, clock, namespace, root, signal);
  };
  await publishAuthorities(context, root, signal);
  await renewCatalogueCertificate(client, clock, namespace, root, signal);

  return {
    root,
    rootPublicKey: rootPublicKey(root),
    ticketKeys: () => publicTicketKeys(ticketKeys),
    onTicketKeys: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    signingTime: () => {
      lastTime = Math.max(clock.now(), lastTime + 1);
      return lastTime;
    },
    run: async (signal) => {
      for (;;) {
        await pause(clock, lookEveryMs, signal);
        if (signal.aborted) return;
        await look(signal).catch((error: unknown) => {
          if (!signal.aborted) log({ message: "looking after the keys failed", error });
        });
      }
    },
  };
};

/** The entries of a Secret, as text; made once, by `make`, where there is none. What is there is never changed. */
const kept = async (
  { client, namespace }: KeyringContext,
  name: string,
  make: () => Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> => {
  const found = await read(client, namespace, name, signal);
  if (found !== undefined) return textOf(found);
  try {
    return textOf(await client.create<Secret>(secrets, secretOf(namespace, name, make()), signal));
  } catch (thrown) {
    // Another replica, that led before, was faster: there is one truth, and it is the cluster's.
    if (!isConflict(thrown)) throw thrown;
    return textOf(await client.get<Secret>(secrets, { namespace, name }, signal));
  }
};

/** The ticket keys as the Secret has them, rotated where it is time. */
const currentTicketKeys = async (context: KeyringContext, signal: AbortSignal): Promise<readonly TicketSigningKey[]> => {
  const { client, clock, namespace } = context;
  const name = ownObjects.tickets;
  const first = () => ({ [ticketKeysEntry]: writeTicketKeys(rotatedTicketKeys([], clock.now())) });
  const entries = await kept(context, name, first, signal);
  const keys = readTicketKeys(entries[ticketKeysEntry] ?? "");
  const rotated = rotatedTicketKeys(keys, clock.now());
  if (rotated === keys) return keys;
  const live = await client.get<Secret>(secrets, { namespace, name }, signal);
  const data = encoded({ [ticketKeysEntry]: writeTicketKeys(rotated) });
  await client.replace<Secret>(secrets, { ...live, data }, signal);
  return rotated;
};

/** What others check Ambit's certificates by; it is no secret. */
const publishAuthorities = async ({ client, namespace }: KeyringContext, root: RootKeys, signal: AbortSignal): Promise<void> => {
  const data = { "hosts-ca.crt": root.hosts.certificate, "catalogue-ca.crt": root.catalogue.certificate };
  const metadata = { name: ownObjects.ca, namespace, labels: { [labels.managedBy]: managedByAmbit } };
  const live = await client
    .get<ClusterObject & { data?: Readonly<Record<string, string>> }>(configMaps, metadata, signal)
    .catch(noneIfMissing);
  if (live === undefined) await client.create(configMaps, { metadata, data } as ClusterObject, signal).catch(fineIfThere);
  else if (Object.entries(data).some(([name, text]) => live.data?.[name] !== text)) {
    await client.replace(configMaps, { ...live, data: { ...live.data, ...data } } as ClusterObject, signal);
  }
};

/**
 * The certificate that the catalogue shows to agents. One that our authority did not sign was put there by somebody else (cert-manager, a person), and stays.
 */
const renewCatalogueCertificate = async (
  client: Pick<ClusterClient, "get" | "create" | "replace">,
  clock: Clock,
  namespace: string,
  root: RootKeys,
  signal: AbortSignal,
): Promise<void> => {
  const name = ownObjects.catalogueTls;
  const live = await read(client, namespace, name, signal);
  if (live !== undefined && !isOursAndEnding(textOf(live)["tls.crt"] ?? "", root, clock.now())) return;
  const key = newCertificateKey();
  const names = ["", `.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.cluster.local`].map((end) => catalogueService + end);
  const certificate = certifyServer(root.catalogue, names.toReversed(), createPublicKey(key), clock.now(), catalogueCertificateMs);
  const entries = { "tls.crt": certificate, "tls.key": pkcs8(key), "ca.crt": root.catalogue.certificate };
  if (live === undefined) {
    await client.create<Secret>(secrets, { ...secretOf(namespace, name, entries), type: "kubernetes.io/tls" }, signal).catch(fineIfThere);
  } else {
    await client.replace<Secret>(secrets, { ...live, data: encoded(entries) }, signal);
  }
};

const isOursAndEnding = (pem: string, root: RootKeys, now: number): boolean => {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    return false;
  }
  const isOurs = certificate.verify(new X509Certificate(root.catalogue.certificate).publicKey);
  return isOurs && certificate.validToDate.getTime() - now < catalogueCertificateMs / 3;
};

const read = (client: Pick<ClusterClient, "get">, namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined> =>
  client.get<Secret>(secrets, { namespace, name }, signal).catch(noneIfMissing);

const noneIfMissing = (thrown: unknown): undefined => {
  if (!isNotFound(thrown)) throw thrown;
};

const fineIfThere = (thrown: unknown): undefined => {
  if (!isConflict(thrown)) throw thrown;
};

const secretOf = (namespace: string, name: string, entries: Readonly<Record<string, string>>): Secret => ({
  metadata: { name, namespace, labels: { [labels.managedBy]: managedByAmbit } },
  type: "Opaque",
  data: encoded(entries),
});

const encoded = (entries: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, Buffer.from(text).toString("base64")]));

const textOf = ({ data = {} }: Secret): Record<string, string> =>
  Object.fromEntries(Object.entries(data).map(([name, base64]) => [name, Buffer.from(base64, "base64").toString("utf8")]));
