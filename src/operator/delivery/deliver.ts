import { isSha256Digest, type Sha256Digest, sha256Of } from "../../api/digest.ts";
import { Refused, Transient, Waiting } from "../../api/errors.ts";
import type { AddressTableDocument, HopDocument, KeySet } from "../../api/host.ts";
import { canonicalJson } from "../../api/json.ts";
import { certifyHost, hostCertificateLifetimeMs, verifyHostCertificate } from "../../identity/host-identity.ts";
import { shortDigest } from "../names.ts";
import type { HopToDeliver } from "./hop.ts";
import type { HostPod } from "./host-pod.ts";
import { type BootAnswer, type HostPlace, type HostSession, handOver, meetHost, openSession } from "./host-session.ts";
import { type RootKeys, signedByRoot } from "./keyring.ts";

/** What a host was given so far in one start of its container, as far as this process knows. */
export interface Delivered {
  readonly containerId: string;
  readonly boot: string;
  readonly component: Sha256Digest;
  readonly certificate: string;
  /** Milliseconds since the epoch. */
  readonly certificateEnds: number;
  /** Ids of the ticket keys, and the table, as text to compare; null before they were delivered. */
  readonly keys: string | null;
  readonly table: string | null;
  /** sha256 of what it was given for its hop: that holds a credential. */
  readonly hop: Sha256Digest | null;
  readonly hasComponent: boolean;
}

/** What a host should have now. */
export interface Wanted {
  readonly keys: KeySet["keys"];
  /** Undefined while its hosts have not been looked up. */
  readonly table: AddressTableDocument["table"] | undefined;
  /** Undefined for a host that is no end of a hop, or of none that its Workload has. */
  readonly hop?: HopToDeliver | undefined;
}

export interface DeliverDeps {
  readonly root: RootKeys;
  readonly placeOf: (pod: HostPod) => HostPlace;
  /** Whether the pod, asked from the API server now, is at the same place and belongs to its Workload. Throws what makes it not so. */
  readonly confirm: (pod: HostPod, signal: AbortSignal) => Promise<void>;
  readonly componentBytes: (pod: HostPod, digest: Sha256Digest, signal: AbortSignal) => Promise<Uint8Array>;
  /** Looks at the host once it has everything but the component, and throws where it must not get it yet. */
  readonly beforeComponent?: ((pod: HostPod, session: HostSession, signal: AbortSignal) => Promise<void>) | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A time for a signed document: later than any given before. */
  readonly signingTime: () => number;
}

/** Whether there is anything to do, without asking the host: a container that was not restarted keeps what it has. */
export const isSettled = (pod: HostPod, before: Delivered | undefined, wanted: Wanted, now: number): before is Delivered =>
  before?.hasComponent === true &&
  before.containerId === pod.containerId &&
  pod.noted?.boot === before.boot &&
  pod.noted.component === before.component &&
  pod.noted.certificate === before.certificate &&
  before.certificateEnds - now > hostCertificateLifetimeMs / 2 &&
  before.keys === keysText(wanted.keys) &&
  (wanted.hop === undefined || before.hop === hopDigest(wanted.hop)) &&
  (wanted.table === undefined || before.table === tableText(wanted.table));

/**
 * Brings one host what it lacks, in this order: certificate, keys, addresses, hop, component. From the certificate on, everything goes to who holds its key and to nobody else.
 *
 * `remember` hears of each step, so that one that fails is gone on from. Throws `Transient` and `Waiting` for what passes by itself, `Stalled` where the host won't have its component, `Refused` where who answers is not the pod's host.
 */
export const deliver = async (
  deps: DeliverDeps,
  pod: HostPod,
  wanted: Wanted,
  before: Delivered | undefined,
  remember: (now: Delivered) => void,
  signal: AbortSignal,
): Promise<Delivered> => {
  const { session, said, known } = await reach(deps, pod, before, signal);
  const isSameStart = before?.containerId === pod.containerId && before.boot === known.boot;
  const earlier = isSameStart ? before : { keys: null, table: null, hop: null, hasComponent: false };
  let delivered: Delivered = { ...earlier, ...known, containerId: pod.containerId, component: componentOf(pod, said) };
  const took = (step: Partial<Delivered>): void => {
    delivered = { ...delivered, ...step };
    remember(delivered);
  };
  try {
    took({});
    const keys = keysText(wanted.keys);
    if (delivered.keys !== keys) {
      const document: KeySet = { kind: "keys", boot: known.boot, time: deps.signingTime(), keys: wanted.keys };
      await session.put("/v1/keys", signedByRoot(deps.root, document));
      took({ keys });
    }
    if (wanted.table === undefined) throw new Waiting("AddressesPending", "the workload's allowed hosts are being looked up", 30_000);
    const table = tableText(wanted.table);
    if (delivered.table !== table) {
      const document: AddressTableDocument = { kind: "addresses", boot: known.boot, version: deps.signingTime(), table: wanted.table };
      await session.put("/v1/addresses", signedByRoot(deps.root, document));
      took({ table });
    }
    // It was started for one, so the Workload that names it is about to be heard of, or the pod to be replaced.
    if (pod.hop !== null && wanted.hop === undefined && delivered.hop === null)
      throw new Waiting("HopPending", "the Workload does not name the MCP server, or the bridge, that the pod was made for", 5_000);
    const hop = wanted.hop && hopDigest(wanted.hop);
    if (wanted.hop && hop && delivered.hop !== hop) {
      const document: HopDocument = { kind: "hop", boot: known.boot, version: deps.signingTime(), ...wanted.hop };
      await session.put("/v1/hop", signedByRoot(deps.root, document));
      took({ hop });
    }
    if (!delivered.hasComponent) {
      await deps.beforeComponent?.(pod, session, signal);
      if (!said.hasComponent) await session.putComponent(await deps.componentBytes(pod, delivered.component, signal));
      took({ hasComponent: true });
    }
    return delivered;
  } finally {
    await session.close();
  }
};

/** Visits a host that was delivered to, and still is the same start of it. Throws `Transient` where it does not answer, and what `visit` throws. */
export const visitHost = async (
  deps: DeliverDeps,
  pod: HostPod,
  delivered: Delivered,
  visit: (session: HostSession) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const { session } = await sessionWith(deps, pod, delivered, signal);
  try {
    await visit(session);
  } finally {
    await session.close();
  }
};

interface Known {
  readonly boot: string;
  readonly certificate: string;
  readonly certificateEnds: number;
}

interface Reached {
  readonly session: HostSession;
  readonly said: BootAnswer;
  readonly known: Known;
}

/** A session with the pod's host: under the certificate that it has where it still is the same start of it, else after meeting it and giving it one. */
const reach = async (deps: DeliverDeps, pod: HostPod, before: Delivered | undefined, signal: AbortSignal): Promise<Reached> => {
  const known = knownBefore(deps, pod, before);
  const again = known && (await sessionWith(deps, pod, known, signal).catch(undefinedIfUnreachable));
  if (again !== undefined) return again;
  const place = deps.placeOf(pod);
  const { said, publicKey } = await meetHost(place, signal);
  componentOf(pod, said);
  // Asked after the meeting: the address was this pod's at that time too, since it gives it up only in ending.
  await deps.confirm(pod, signal);
  const { boot } = said;
  const certificate = certifyHost(deps.root.hosts, { podUid: pod.uid, boot }, publicKey, deps.now());
  const certificateEnds = deps.now() + hostCertificateLifetimeMs;
  await handOver(place, "/v1/certificate", signedByRoot(deps.root, { kind: "certificate", boot, certificate }), signal);
  return sessionWith(deps, pod, { boot, certificate, certificateEnds }, signal);
};

const sessionWith = async (deps: DeliverDeps, pod: HostPod, known: Known, signal: AbortSignal): Promise<Reached> => {
  const identity = { podUid: pod.uid, boot: known.boot };
  const session = openSession(deps.placeOf(pod), identity, deps.root, signal);
  try {
    return { session, said: await session.boot(), known };
  } catch (thrown) {
    await session.close();
    throw thrown;
  }
};

/** Another answers where the container restarted. */
const undefinedIfUnreachable = (thrown: unknown): undefined => {
  if (!(thrown instanceof Transient)) throw thrown;
};

/** The certificate of before, if it is good for another half of its life; by what this process remembers, or by what the pod says, which anybody may have written. */
const knownBefore = ({ root, now }: DeliverDeps, pod: HostPod, before: Delivered | undefined): Known | undefined => {
  const { boot, certificate } = before?.containerId === pod.containerId ? before : (pod.noted ?? {});
  if (boot === undefined || certificate === undefined) return undefined;
  try {
    const certificateEnds = verifyHostCertificate(certificate, root.hosts.certificate, { podUid: pod.uid, boot }, now());
    return certificateEnds - now() > hostCertificateLifetimeMs / 2 ? { boot, certificate, certificateEnds } : undefined;
  } catch {
    // Whatever is wrong with it, the host is met anew.
    return undefined;
  }
};

/** The component that a host was started for, if it is the pod's host. Throws `Refused` (`HostMistaken`). */
const componentOf = (pod: HostPod, { pod: uid, component }: BootAnswer): Sha256Digest => {
  if (uid !== pod.uid) throw new Refused("HostMistaken", "who answers at the pod's address is in another pod");
  if (!isSha256Digest(component) || shortDigest(component) !== pod.shortDigest) {
    throw new Refused("HostMistaken", `who answers at the pod's address runs other code than the pod's label says (${pod.shortDigest})`);
  }
  return component;
};

const keysText = (keys: Wanted["keys"]): string => keys.map(({ kid }) => kid).join(" ");

const hopDigest = (hop: HopToDeliver): Sha256Digest => sha256Of(canonicalJson(hop as unknown as Parameters<typeof canonicalJson>[0]));

const tableText = (table: AddressTableDocument["table"]): string => canonicalJson(table as unknown as Parameters<typeof canonicalJson>[0]);
