import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { AmbitError, Transient } from "../../src/api/errors.ts";
import { loadAccess } from "../../src/kube/access.ts";
import { ApiError, isExpired, isNotFound } from "../../src/kube/api-error.ts";
import { type ClientOptions, ClusterClient, defaultClientLimits } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { Controller } from "../../src/kube/controller.ts";
import { Informer } from "../../src/kube/informer.ts";
import { type ClusterObject, keyOf, keyText, type ObjectKey, type ResourceType } from "../../src/kube/object.ts";
import { done } from "../../src/kube/reconciler.ts";
import { defaultReflectorTiming, type ReflectorTrouble } from "../../src/kube/reflector.ts";
import type { Change } from "../../src/kube/store.ts";
import { type OwnApiServer, startOwnApiServer, whyNoOwnApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { type CuttableLink, cuttableLink } from "./cuttable-link.ts";
import { randomFrom } from "./random.ts";

/**
 * Ten thousand changes while the API server is killed, restarted, compacted and made to refuse: nothing may be missed, by the store, by who listens to it, or by the work
 * queue behind it.
 *
 * What "missed" means: while nothing is disturbed, every single version must be told. Across a gap the server itself forgets versions in between; there the last version of
 * each object must be told, the deletion of each object that was told before, and never an older version after a newer.
 */

const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const namespace = "soak";

const workers = 12;
const namesEach = 25;

/** What one worker did to the names that are its own. A version is what the server said of a write, or what was found after one whose answer was lost. */
interface Write {
  readonly key: string;
  readonly uid: string;
  /** Null for a deletion. */
  readonly version: string | null;
}

class Writers {
  readonly writes: Write[] = [];
  readonly #client: ClusterClient;
  readonly #random: () => number;
  readonly #known = new Map<string, ClusterObject>();

  constructor(client: ClusterClient, seed: number) {
    this.#client = client;
    this.#random = randomFrom(seed);
  }

  /** Makes at least `count` changes, through whatever happens meanwhile. */
  async write(count: number): Promise<void> {
    const until = this.writes.length + count;
    await Promise.all(
      Array.from({ length: workers }, async (_, worker) => {
        while (this.writes.length < until) {
          const name = `w${worker}-${Math.floor(this.#random() * namesEach)}`;
          await this.#change({ namespace, name });
        }
      }),
    );
  }

  async #change(key: ObjectKey): Promise<void> {
    try {
      await this.#changeOnce(key);
    } catch (thrown) {
      if (!(thrown instanceof AmbitError)) throw thrown;
      // Whether it was written is unknown: look, when there is somebody to ask.
      await this.#lookUp(key);
    }
  }

  async #changeOnce(key: ObjectKey): Promise<void> {
    const known = this.#known.get(keyText(key));
    if (known === undefined) {
      this.#note(key, await this.#client.create<ClusterObject>(configMaps, { metadata: key }));
    } else if (this.#random() < 0.2) {
      await this.#client.delete(configMaps, key, { uid: known.metadata.uid ?? "" });
      this.#note(key, undefined);
    } else {
      const labels = { turn: String(this.writes.length) };
      this.#note(key, await this.#client.replace(configMaps, { ...known, metadata: { ...known.metadata, labels } }));
    }
  }

  async #lookUp(key: ObjectKey): Promise<void> {
    for (;;) {
      try {
        this.#note(key, await this.#client.get(configMaps, key));
        return;
      } catch (thrown) {
        if (isNotFound(thrown)) {
          this.#note(key, undefined);
          return;
        }
        if (!(thrown instanceof AmbitError)) throw thrown;
        await delay(100);
      }
    }
  }

  #note(key: ObjectKey, object: ClusterObject | undefined): void {
    const text = keyText(key);
    const before = this.#known.get(text);
    if (object === undefined) this.#known.delete(text);
    else this.#known.set(text, object);
    if (before !== undefined && before.metadata.uid !== object?.metadata.uid) {
      this.writes.push({ key: text, uid: before.metadata.uid ?? "", version: null });
    }
    if (object !== undefined && object.metadata.resourceVersion !== before?.metadata.resourceVersion) {
      this.writes.push({ key: text, uid: object.metadata.uid ?? "", version: object.metadata.resourceVersion ?? "" });
    }
  }
}

const toldOf = (change: Change<ClusterObject>): Write => ({
  key: keyOf(change.object),
  uid: change.object.metadata.uid ?? "",
  version: change.type === "deleted" ? null : (change.object.metadata.resourceVersion ?? ""),
});

/** By object, in order. */
const byUid = (writes: readonly Write[]): Map<string, (string | null)[]> => {
  const grouped = new Map<string, (string | null)[]>();
  for (const { uid, version } of writes) grouped.set(uid, [...(grouped.get(uid) ?? []), version]);
  return grouped;
};

/** Whether `told` is `written` with nothing but some versions left out. */
const isInOrder = (told: readonly (string | null)[], written: readonly (string | null)[]): boolean => {
  let at = 0;
  for (const version of told) {
    const found = written.indexOf(version, at);
    if (found < 0) return false;
    at = found + 1;
  }
  return true;
};

/** Objects whose end was not told, or of which something was told out of order. */
const missed = (told: readonly Write[], written: readonly Write[]): string[] => {
  const toldByUid = byUid(told);
  const wrong: string[] = [];
  for (const [uid, versions] of byUid(written)) {
    const heard = toldByUid.get(uid) ?? [];
    const last = versions.at(-1);
    // Made and deleted within a gap: there was never anything to tell.
    const isUnseen = heard.length === 0 && last === null;
    if (!isUnseen && (heard.at(-1) !== last || !isInOrder(heard, versions)))
      wrong.push(`${uid}: wrote ${versions.join()}, told ${heard.join()}`);
  }
  return wrong;
};

const reason = whyNoOwnApiServer();

describe("the reflector and the queue over ten thousand changes", { skip: reason ?? false }, () => {
  let server: OwnApiServer;
  let admin: ClusterClient;
  /** Between the watcher and the server. */
  let link: CuttableLink;
  let watcher: ClusterClient;
  let writers: Writers;
  let informer: Informer<ClusterObject>;
  let running: Promise<unknown>;
  const end = new AbortController();
  const told: Write[] = [];
  const troubles: ReflectorTrouble[] = [];
  /** The version that the last reconcile of each key saw. */
  const reconciled = new Map<string, string | undefined>();

  const clientOf = async (options: Partial<ClientOptions> = {}) =>
    new ClusterClient({
      access: await loadAccess({ file: server.kubeconfig }),
      clock: systemClock,
      random: Math.random,
      userAgent: "ambit-soak",
      limits: { ...defaultClientLimits, requestMs: 10_000 },
      ...options,
    });

  before(async () => {
    server = await startOwnApiServer();
    admin = await clientOf();
    await admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
    const access = await serviceAccountAccess(server, admin);
    link = await cuttableLink(Number(access.server.port));
    watcher = await clientOf({ access: { ...access, server: new URL(`https://127.0.0.1:${link.port}`) } });
    writers = new Writers(admin, 20_261_130);
    informer = new Informer({
      client: watcher,
      type: configMaps,
      selection: { namespace },
      clock: systemClock,
      random: Math.random,
      onTrouble: (trouble) => troubles.push(trouble),
      timing: { ...defaultReflectorTiming, pageSize: 40, watchSeconds: 5, firstBackOffMs: 100, longestBackOffMs: 1000 },
    });
    informer.store.subscribe((change) => told.push(toldOf(change)));
    const fails = randomFrom(7);
    const controller = new Controller({
      name: "soak",
      reconcile: async (key, signal) => {
        const seen = informer.store.get(keyText(key))?.metadata.resourceVersion;
        await delay(fails() * 5, undefined, { signal });
        if (fails() < 0.02) throw new Transient("Flaky", "one in fifty fails");
        reconciled.set(keyText(key), seen);
        return done;
      },
      workers: 4,
      clock: systemClock,
      random: Math.random,
      timing: { reconcileMs: 10_000, backOff: { firstMs: 5, longestMs: 1000, perSecond: 1000, burst: 1000 } },
    });
    controller.owns(informer.store);
    running = Promise.all([informer.run(end.signal), controller.run(end.signal)]);
    await informer.synced;
  });

  after(async () => {
    end.abort();
    await running;
    await watcher?.close();
    await link?.[Symbol.asyncDispose]();
    await admin?.close();
    await server?.[Symbol.asyncDispose]();
  });

  /** The store, and what the queue's worker saw last of each key, are what the server has. */
  const settled = async (): Promise<void> => {
    const { items } = await admin.listPage(configMaps, { namespace });
    const truth = new Map(items.map((item) => [keyOf(item), item.metadata.resourceVersion]));
    const holds = async () => {
      const stored = new Map(informer.store.list().map((object) => [keyOf(object), object.metadata.resourceVersion]));
      return isSame(stored, truth) && [...reconciled.keys(), ...truth.keys()].every((key) => reconciled.get(key) === truth.get(key));
    };
    assert.ok(await becomes(holds, 60_000), `the store never became what the server has, after ${JSON.stringify(troubles.slice(-5))}`);
  };

  const assertNothingMissed = (): void => assert.deepEqual(missed(told, writers.writes), []);

  test("every version is told while nothing disturbs, also across watches that end", async () => {
    const before = troubles.length;
    await writers.write(2500);
    await settled();
    assert.deepEqual(byUid(told), byUid(writers.writes));
    assert.equal(troubles.length, before);
  });

  test("nothing is missed while the server is killed and started again", async () => {
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      const writing = writers.write(1250);
      await delay(300);
      await server.stop(signal);
      await delay(500);
      await server.start();
      await writing;
    }
    await settled();
    assertNothingMissed();
    assert.ok(troubles.length > 0, "the watch must have broken off");
  });

  test("nothing is missed while the history that a watch would go on from is compacted away", async () => {
    const before = troubles.length;
    for (let round = 0; round < 2; round++) {
      await writers.write(500);
      link.cut();
      await writers.write(500);
      // A server that starts remembers what is newer; etcd forgets what is older.
      await server.stop("SIGKILL");
      await server.compact();
      await server.start();
      link.mend();
      await writers.write(250);
    }
    await settled();
    assertNothingMissed();
    assert.ok(
      troubles.slice(before).some(({ error, next }) => isExpired(error) && next === "list"),
      "a watch must have been answered with 410",
    );
  });

  test("nothing is missed while the server refuses with 429", async () => {
    const before = troubles.length;
    await narrow(admin);
    const refused = () => troubles.slice(before).some(({ error }) => error instanceof ApiError && error.status === 429);
    const crowd = new AbortController();
    const crowding = Promise.all(Array.from({ length: 8 }, () => crowdOut(watcher, crowd.signal)));
    await writers.write(2500);
    assert.ok(await becomes(async () => refused(), 60_000), "the server must have answered 429");
    crowd.abort();
    await crowding;
    await settled();
    assertNothingMissed();
  });

  test("ten thousand changes were made", (context) => {
    assert.ok(writers.writes.length >= 10_000);
    assertNothingMissed();
    const count = missed(told, writers.writes).length;
    const kinds = Map.groupBy(troubles, ({ error }) => (error instanceof AmbitError ? error.code : String(error)));
    const counts = [...kinds].map(([code, all]) => `${code} ${all.length}`).join(", ");
    context.diagnostic(`${writers.writes.length} changes made, ${told.length} told, ${count} missed; troubles: ${counts}`);
  });
});

const isSame = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean =>
  a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);

/** What the server itself holds back for its masters is never refused to them: the one that is to be refused is a service account. */
const serviceAccountAccess = async (server: OwnApiServer, admin: ClusterClient) => {
  const post = (path: string, body: object) => admin.request({ method: "POST", path, body });
  await post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: "watcher" } });
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  await post(`${rbac}/clusterroles`, {
    metadata: { name: "soak-watcher" },
    rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }],
  });
  await post(`${rbac}/clusterrolebindings`, {
    metadata: { name: "soak-watcher" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "soak-watcher" },
    subjects: [{ kind: "ServiceAccount", name: "watcher", namespace }],
  });
  const { status } = (await post(`/api/v1/namespaces/${namespace}/serviceaccounts/watcher/token`, {
    spec: { expirationSeconds: 7200 },
  })) as { status: { token: string } };
  const own = await loadAccess({ file: server.kubeconfig });
  const { tls } = await own.credentials();
  return { ...own, credentials: async () => ({ headers: { authorization: `Bearer ${status.token}` }, tls }) };
};

const fairness = "/apis/flowcontrol.apiserver.k8s.io/v1";

/** Leaves the watcher's account one seat at the server, and no queue before it: what comes meanwhile is answered with 429. */
const narrow = async (admin: ClusterClient): Promise<void> => {
  await admin.request({
    method: "POST",
    path: `${fairness}/prioritylevelconfigurations`,
    body: {
      metadata: { name: "soak" },
      spec: {
        type: "Limited",
        limited: { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: { type: "Reject" } },
      },
    },
  });
  await admin.request({
    method: "POST",
    path: `${fairness}/flowschemas`,
    body: {
      metadata: { name: "soak" },
      spec: {
        priorityLevelConfiguration: { name: "soak" },
        matchingPrecedence: 2,
        rules: [
          {
            subjects: [{ kind: "ServiceAccount", serviceAccount: { namespace, name: "watcher" } }],
            resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
          },
        ],
      },
    },
  });
};

/** Keeps the seat busy. */
const crowdOut = async (client: ClusterClient, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await client.listPage(configMaps, { namespace }, { retries: 0 }).catch((thrown: unknown) => {
      if (!(thrown instanceof AmbitError)) throw thrown;
    });
  }
};
