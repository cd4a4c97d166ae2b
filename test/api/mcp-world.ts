import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { bridgeDigest } from "../../src/api/bridge-component.ts";
import type { Sha256Digest } from "../../src/api/digest.ts";
import { kubectlProgram } from "../../src/cli/kubectl-program.ts";
import { run } from "../../src/cli/program.ts";
import { draftObjectName } from "../../src/grants/draft.ts";
import { toolListing } from "../../src/grants/listing.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { deployments, namespaces, pods, toolGrants, workloads } from "../../src/kube/resource-types.ts";
import type { ComponentStore } from "../../src/operator/component-store.ts";
import type { OperatorContext, Runs } from "../../src/operator/context.ts";
import { type Egress, egressOf } from "../../src/operator/egress/egress.ts";
import { defaultEgressSettings } from "../../src/operator/egress/settings.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../../src/operator/kinds.ts";
import { componentLabels, podAnnotations } from "../../src/operator/names.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { workloadController } from "../../src/operator/workload/controller.ts";
import type { Deployment } from "../../src/operator/workload/kinds.ts";
import { type ApiServer, startApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers, withBridge } from "./operator-under-test.ts";

const withinMs = 20_000;

/** Without the prototypes that parsed objects lack. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** A Workload's object of either kind, with what is asked of it most. */
export const componentIn = ({ status }: ClusterWorkload, of: string) => status?.components?.find((one) => one.name === of);
export const reasonOf = ({ status }: ClusterToolGrant | ClusterWorkload): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Ready")?.reason;

/**
 * An API server with one Workload, `issues`, whose MCP server has one tool, `list_issues`, and every controller of the operator but delivery. No kubelet runs beside it: pods and their rollouts are made up,
 * and what the server lists is told by the tests.
 */
export class McpWorld implements AsyncDisposable {
  readonly namespace = `ambit-mcp-${randomBytes(4).toString("hex")}`;
  readonly workload = "issues";
  readonly entry: string;
  readonly components = new MadeUpComponents();
  /** Where images come from; by default made up. */
  store: ComponentStore = this.components;
  readonly grantName: string;
  readonly client: ClusterClient;
  readonly #server: ApiServer;
  #operator: Awaited<ReturnType<typeof runControllers>> | undefined;
  listings = new ToolListings();

  private constructor(server: ApiServer, client: ClusterClient, entry: string) {
    this.#server = server;
    this.client = client;
    this.entry = entry;
    this.grantName = draftObjectName({ workload: this.workload, component: entry, tool: "list_issues" });
  }

  static async start(entry: string): Promise<McpWorld> {
    const server = await startApiServer();
    await installCrds(server.request);
    const world = new McpWorld(server, await clientAs(server.kubeconfig), entry);
    await world.client.create(namespaces, { metadata: { name: world.namespace } });
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operator?.[Symbol.asyncDispose]();
    await this.client.delete(namespaces, { name: this.namespace });
    await this.client.close();
    await this.#server[Symbol.asyncDispose]();
  }

  get failures(): readonly unknown[] {
    return this.#operator?.failures ?? [];
  }

  /** One that starts anew remembers no listing. `more` are controllers besides. */
  async startOperator(
    bridge: Sha256Digest = bridgeDigest,
    rootKey = "cm9vdA==",
    more: (context: OperatorContext, egress: Egress) => readonly Runs[] = () => [],
  ): Promise<void> {
    await this.#operator?.[Symbol.asyncDispose]();
    this.listings = new ToolListings();
    this.#operator = await runControllers(this.client, withBridge(this.store, bridge), (context) => {
      const ask = async () => [{ address: "8.8.8.8", ttl: 60 }];
      const converge = { ...defaultEgressSettings.converge, settleMs: 10 };
      const egress = egressOf(context, { settings: { ...defaultEgressSettings, converge }, ask });
      const settings = { image: "ambit:test", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey } as const;
      const workload = workloadController(context, settings, egress, this.listings);
      return [egress, workload, ...toolGrantControllers(context, this.listings), ...more(context, egress)];
    });
  }

  async put(spec: object): Promise<void> {
    const metadata = { name: this.workload, namespace: this.namespace };
    await this.client.request({
      method: "PATCH",
      path: objectPath(workloads, metadata),
      query: { fieldManager: "git" },
      contentType: "application/apply-patch+yaml",
      body: { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", metadata, spec },
    });
  }

  get<T extends ClusterObject>(type: ResourceType, name: string): Promise<T | null> {
    return this.client.get<T>(type, { namespace: this.namespace, name }).catch(() => null);
  }

  /** The object as soon as it is so. */
  async when<T extends ClusterObject>(type: ResourceType, name: string, holds: (object: T) => boolean = () => true): Promise<T> {
    let last: T | null = null;
    const came = await becomes(async () => {
      last = await this.get<T>(type, name);
      return last !== null && holds(last);
    }, withinMs);
    assert.ok(came && last, `${name} becomes so, and is ${JSON.stringify(last)}`);
    return last;
  }

  /** The tool's grant, or another, as soon as it was judged so. */
  grantIs(phase: string, holds: (grant: ClusterToolGrant) => boolean = () => true, name = this.grantName): Promise<ClusterToolGrant> {
    const isSo = (grant: ClusterToolGrant): boolean =>
      grant.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation && holds(grant);
    return this.when<ClusterToolGrant>(toolGrants, name, isSo);
  }

  workloadIs(holds: (workload: ClusterWorkload) => boolean): Promise<ClusterWorkload> {
    return this.when<ClusterWorkload>(workloads, this.workload, holds);
  }

  /** What a host with this bridge says that the server lists. */
  tell(bridge: Sha256Digest, description = "List the issues."): void {
    const tools = [{ name: "list_issues", description, inputSchema: '{"type":"object"}' }];
    this.listings.set(this.listed, bridge, toolListing({ server: "issues" }, tools));
  }

  get listed() {
    return { namespace: this.namespace, workload: this.workload, component: this.entry };
  }

  /** As a reviewer does, by `kubectl ambit approve`. */
  async approve(...options: readonly string[]): Promise<void> {
    let said = "";
    const err = (text: string): void => {
      said += text;
    };
    const terminal = { out: () => undefined, err, env: {}, folder: tmpdir(), interactive: false, colours: false, now: Date.now };
    const subject = ["--subject", `ServiceAccount:${this.namespace}/triage`];
    const where = ["-n", this.namespace, "--kubeconfig", this.#server.kubeconfig];
    const args = ["approve", this.grantName, "--yes", "--read-only", ...subject, ...options, ...where];
    assert.equal(await run(args, terminal, kubectlProgram), 0, said);
  }

  async patchStatus(type: ResourceType, name: string, status: object): Promise<void> {
    await this.client.request({
      method: "PATCH",
      path: objectPath(type, { name, namespace: this.namespace }, "status"),
      contentType: "application/merge-patch+json",
      body: { status },
    });
  }

  /** As if the Deployment's controller had done its work. */
  async rollOut(component: string): Promise<void> {
    const name = `${this.workload}-${component}`;
    const { metadata } = await this.when<Deployment>(deployments, name);
    const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await this.patchStatus(deployments, name, { ...counts, observedGeneration: metadata.generation });
  }

  /** A pod that is ready and has this code. */
  async runPod(name: string, component: string, code: Sha256Digest): Promise<void> {
    const annotations = { [podAnnotations.delivered]: code };
    await this.client.create<ClusterObject>(pods, {
      metadata: { name, namespace: this.namespace, labels: componentLabels(this.workload, component), annotations },
      spec: { containers: [{ name: "host", image: "ambit" }] },
    } as ClusterObject);
    await this.patchStatus(pods, name, { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
  }

  async endPod(name: string): Promise<void> {
    const path = objectPath(pods, { name, namespace: this.namespace });
    await this.client.request({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
  }
}
