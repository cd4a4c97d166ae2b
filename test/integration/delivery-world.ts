import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { type Sha256Digest, sha256Of } from "../../src/api/digest.ts";
import { defaultHostLimits, type HostConfig } from "../../src/api/host.ts";
import { type Dispatched, dispatchToHost, type HostDispatcher } from "../../src/catalogue/dispatch.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../../src/host/node-arguments.ts";
import { hostTls } from "../../src/identity/host-identity.ts";
import { ApiError } from "../../src/kube/api-error.ts";
import { systemClock } from "../../src/kube/clock.ts";
import type { Happening } from "../../src/kube/events.ts";
import { noMetrics } from "../../src/kube/metrics.ts";
import { type ClusterObject, keyOf } from "../../src/kube/object.ts";
import { Store } from "../../src/kube/store.ts";
import type { OperatorContext } from "../../src/operator/context.ts";
import { newRootKeys, type RootKeys, rootPublicKey } from "../../src/operator/delivery/keyring.ts";
import type { Keyring } from "../../src/operator/delivery/own-keys.ts";
import { createDelivery } from "../../src/operator/delivery/reconciler.ts";
import { byWorkloadLabel } from "../../src/operator/informers.ts";
import type { ClusterToolGrant, Pod } from "../../src/operator/kinds.ts";
import { componentLabels, labels, podAnnotations, shortDigest } from "../../src/operator/names.ts";
import { grantIndexes } from "../../src/operator/toolgrant/indexes.ts";
import { freshNonce, signTicket } from "../../src/tickets/ticket.ts";
import { publicTicketKeys, rotatedTicketKeys, type TicketSigningKey } from "../../src/tickets/ticket-keys.ts";
import { temporaryFolder } from "./host-under-test.ts";

export interface RunningHost {
  readonly port: number;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** A host as a pod's container would start it, on a port of its own. */
export const startTlsHost = async (
  setup: { readonly component: Sha256Digest; readonly rootKey: string; readonly podUid: string; readonly cacheFolder: string },
  port = 0,
): Promise<RunningHost> => {
  const config: HostConfig = {
    ...setup,
    listen: { address: "127.0.0.1", port },
    transport: "tls",
    allowedHosts: ["api.example.com"],
    resolver: "table",
    hostOverrides: {},
    environment: {},
    mounts: [],
    limits: { ...defaultHostLimits, timeoutMs: 10_000 },
    callsPerInstance: 1,
  };
  const child = spawn(process.execPath, [...hostArguments(config), hostEntry, "-"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: hostEnvironment(config),
  });
  child.stdin.on("error", () => undefined);
  child.stdin.write(`${JSON.stringify(config)}\n`);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { listening } = JSON.parse(line) as { listening: { port: number } };
  return {
    port: listening.port,
    child,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
};

const owner = (kind: string, { metadata }: ClusterObject) => ({
  apiVersion: "v1",
  kind,
  name: metadata.name,
  uid: metadata.uid ?? "",
  controller: true,
});

const named = (name: string, more: object = {}) => ({ name, namespace: "agents", uid: randomUUID(), resourceVersion: "1", ...more });

/** A cluster of one Workload whose API server is kept in memory, and the real delivery at work on it. */
export class DeliveryWorld {
  readonly root: RootKeys = newRootKeys(Date.now());
  readonly pods = new Store<Pod>({ workload: byWorkloadLabel });
  readonly events: Happening[] = [];
  readonly failures: string[] = [];
  /** How often the component was asked for. */
  fetched = 0;
  /** How many documents with a time were signed: key sets and tables. */
  signed = 0;
  table: Record<string, string[]> | undefined = { "api.example.com:443": ["192.0.2.7"] };
  /** How far the operator's clock is from this machine's. */
  skewMs = 0;
  ticketKeys: readonly TicketSigningKey[] = rotatedTicketKeys([], Date.now());
  readonly ports = new Map<string, number>();
  /** What the API server says of pods where that is not what the store says. */
  readonly truth = new Map<string, Pod | undefined>();
  readonly component: Uint8Array;
  #stop = new AbortController();
  #work: Promise<void>;
  readonly #keyListeners = new Set<() => void>();
  readonly #tableListeners = new Set<(of: { namespace: string; workload: string; component: string }) => void>();
  readonly #workload: ClusterObject = { metadata: named("github") };
  readonly #deployment: ClusterObject = {
    metadata: named("github-main", { labels: componentLabels("github", "main"), ownerReferences: [owner("Workload", this.#workload)] }),
  };
  readonly #replicaSet: ClusterObject = { metadata: named("github-main-1", { ownerReferences: [owner("Deployment", this.#deployment)] }) };
  readonly #dispatcher: HostDispatcher = dispatchToHost();
  #version = 1;
  #time = 0;

  constructor(component: Uint8Array) {
    this.component = component;
    this.#work = this.#run();
  }

  #run(): Promise<void> {
    const delivery = createDelivery(this.#context(), {
      keyring: this.#keyring(),
      egress: {
        tableFor: () => this.table && { version: 1, table: this.table },
        subscribe: (listener) => {
          this.#tableListeners.add(listener);
          return () => undefined;
        },
      },
      placeOf: ({ key }) => ({ address: "127.0.0.1", port: this.ports.get(key.name) ?? 1 }),
    });
    return delivery.run(this.#stop.signal);
  }

  /** Another operator takes over, which knows what the cluster says and nothing else. */
  async operatorRestarts(): Promise<void> {
    this.#stop.abort();
    await this.#work;
    this.#stop = new AbortController();
    this.#work = this.#run();
  }

  get digest(): Sha256Digest {
    return sha256Of(this.component);
  }

  startHost(
    podUid: string,
    more: { rootKey?: string; cacheFolder?: string; component?: Sha256Digest } = {},
    port = 0,
  ): Promise<RunningHost> {
    return startTlsHost(
      { component: this.digest, rootKey: rootPublicKey(this.root), podUid, cacheFolder: temporaryFolder(), ...more },
      port,
    );
  }

  /** The kubelet says that the pod's container runs. */
  podRuns(
    name: string,
    uid: string,
    port: number,
    {
      owned = true,
      digest = this.digest,
      annotations,
    }: { owned?: boolean; digest?: Sha256Digest; annotations?: Record<string, string> } = {},
  ): void {
    this.ports.set(name, port);
    this.#put({
      metadata: {
        ...this.pods.get(`agents/${name}`)?.metadata,
        name,
        namespace: "agents",
        uid,
        labels: { ...componentLabels("github", "main"), [labels.digest]: shortDigest(digest) },
        ...(annotations ? { annotations } : {}),
        ...(owned ? { ownerReferences: [owner("ReplicaSet", this.#replicaSet)] } : {}),
      },
      status: {
        phase: "Running",
        podIP: "127.0.0.1",
        containerStatuses: [{ name: "host", containerID: `containerd://${randomUUID()}`, state: { running: {} } }],
      },
    });
  }

  annotations(name: string): Readonly<Record<string, string>> {
    return this.pods.get(`agents/${name}`)?.metadata.annotations ?? {};
  }

  annotate(name: string, annotations: Readonly<Record<string, string>>): void {
    const pod = this.pods.get(`agents/${name}`);
    if (pod === undefined) throw new Error(`there is no pod ${name}`);
    this.#put({ ...pod, metadata: { ...pod.metadata, annotations } });
  }

  /** Resolves once a delivery to the pod has succeeded that was not the one of `before`. */
  async delivered(name: string, before = ""): Promise<string> {
    await this.until(() => ![undefined, before].includes(this.annotations(name)[podAnnotations.boot]));
    return this.annotations(name)[podAnnotations.boot] ?? "";
  }

  async until(holds: () => boolean | Promise<boolean>): Promise<void> {
    for (let tries = 0; !(await holds()); tries++) {
      if (tries > 400) throw new Error(`it did not come to hold: ${JSON.stringify({ events: this.events, failures: this.failures })}`);
      await passed(50);
    }
  }

  rotateTicketKeys(now: number): void {
    this.ticketKeys = rotatedTicketKeys(this.ticketKeys, now);
    for (const tell of this.#keyListeners) tell();
  }

  changeTable(table: Record<string, string[]>): void {
    this.table = table;
    for (const tell of this.#tableListeners) tell({ namespace: "agents", workload: "github", component: "main" });
  }

  ticket(pod: string, boot: string, body: string, key = this.ticketKeys[0]): string {
    if (key === undefined) throw new Error("there is no ticket key");
    return signTicket(key.key, {
      v: 1,
      kid: key.kid,
      body: sha256Of(body),
      interface: "example:github/issues",
      function: "list-issues",
      definition: `v1:${sha256Of("definition")}`,
      component: this.digest,
      grant: sha256Of("grant"),
      pod,
      boot,
      iat: Date.now(),
      exp: Date.now() + 30_000,
      nonce: freshNonce(),
    });
  }

  /** Calls as the catalogue does: to the host that the annotations name, whoever listens at its address. */
  call(port: number, pod: string, boot: string, body: string, ticket = this.ticket(pod, boot, body)): Promise<Dispatched> {
    const tls = hostTls({ podUid: pod, boot }, this.root.hosts.certificate);
    const endpoint = { url: `https://127.0.0.1:${port}`, tls, podUid: pod, bootId: boot, component: this.digest, deadlineMs: 10_000 };
    return this.#dispatcher.dispatch(endpoint, ticket, Buffer.from(body));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#work;
    await this.#dispatcher.close();
  }

  #put(pod: Pod): void {
    this.pods.apply({ ...pod, metadata: { ...pod.metadata, resourceVersion: String(++this.#version) } });
  }

  #keyring(): Keyring {
    return {
      root: this.root,
      rootPublicKey: rootPublicKey(this.root),
      ticketKeys: () => publicTicketKeys(this.ticketKeys),
      onTicketKeys: (listener) => {
        this.#keyListeners.add(listener);
        return () => undefined;
      },
      signingTime: () => {
        this.signed++;
        this.#time = Math.max(Date.now(), this.#time + 1);
        return this.#time;
      },
      run: async () => undefined,
    };
  }

  #context(): OperatorContext {
    const workloads = new Store<ClusterObject>();
    workloads.apply({ ...this.#workload, spec: { components: [{ name: "main" }] } } as ClusterObject);
    const deployments = new Store<ClusterObject>();
    deployments.apply(this.#deployment);
    const objects = new Map([[keyOf(this.#replicaSet), this.#replicaSet]]);
    const client = {
      get: async (type: { kind: string }, { namespace, name }: { namespace: string; name: string }) => {
        const key = `${namespace}/${name}`;
        const pod = this.truth.has(key) ? this.truth.get(key) : this.pods.get(key);
        const found = type.kind === "Pod" ? pod : objects.get(key);
        if (found === undefined) throw new ApiError("NotFound", `there is no ${key}`, { status: 404 });
        return found;
      },
      /** Server-side apply by the one manager of these annotations: what it does not name any more goes. */
      request: async ({ path, body }: { path: string; body: Pod }) => {
        const pod = this.pods.get(`agents/${path.split("/").at(-1)}`);
        if (pod === undefined) throw new ApiError("NotFound", "the pod is gone", { status: 404 });
        this.#put({ ...pod, metadata: { ...pod.metadata, annotations: body.metadata.annotations ?? {} } });
        return this.pods.get(keyOf(pod));
      },
    };
    const components = {
      fetch: async () => {
        this.fetched++;
        return { digest: this.digest, bytes: async () => this.component };
      },
    };
    return {
      client,
      clock: { ...systemClock, now: () => Date.now() + this.skewMs },
      random: Math.random,
      metrics: noMetrics,
      stores: { pods: this.pods, workloads, deployments, toolGrants: new Store<ClusterToolGrant>(grantIndexes) },
      components,
      events: { record: (_: ClusterObject, happening: Happening) => this.events.push(happening) },
      log: ({ error }: { error?: unknown }) => this.failures.push(String(error)),
      namespace: "ambit-system",
    } as unknown as OperatorContext;
  }
}
