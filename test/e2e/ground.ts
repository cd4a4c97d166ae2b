import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import type { Workload } from "../../src/api/generated/workload.ts";
import { becomes } from "../cluster/becomes.ts";
import { type BuiltInNode, startNode, type TestCluster, whyNoCluster } from "../cluster/start-node.ts";
import { apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { serveTools, type ToolsRegistry } from "./tools-registry.ts";

/** The reason why these suites can't run here, or null. They put servers and names into the world around the node, and look at it from inside. */
export const whyNoGround = async (): Promise<string | null> =>
  process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world that a test could change" : whyNoCluster();

/** How long anything may take to come true, on a machine that does much else. */
const withinMs = 90_000;

/** Waits until something holds; what `seen` gives is told where it does not come to be. */
export const eventually = async (
  what: string,
  holds: () => Promise<boolean>,
  seen: () => Promise<unknown> = async () => "no more is known",
): Promise<void> => {
  if (await becomes(holds, withinMs)) return;
  assert.fail(`${what} within ${withinMs / 1000} s: ${JSON.stringify(await seen())}`);
};

/** The same code under another digest: a custom section more. */
export const rebuilt = (component: Uint8Array, how: string): Uint8Array => {
  const name = Buffer.from("build");
  const content = Buffer.concat([Buffer.from([name.length]), name, Buffer.from(how)]);
  return Buffer.concat([component, Buffer.from([0, content.length]), content]);
};

/** The bytes of a component that tests use, and of an example. */
export const fixture = (name: string): Buffer => readFileSync(new URL(`../fixtures/components/${name}.wasm`, import.meta.url));
export const example = (name: string): Buffer => readFileSync(new URL(`../../examples/${name}/${name}.wasm`, import.meta.url));

/** What every suite stands on: Ambit, installed on the node; a registry in the node's world; and a namespace of the suite's own. */
export class Ground implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly node: BuiltInNode;
  readonly kubectl: Kubectl;
  readonly registry: ToolsRegistry;
  readonly namespace: string;
  readonly #ends: (() => Promise<void>)[];

  private constructor(cluster: TestCluster, node: BuiltInNode, registry: ToolsRegistry, namespace: string) {
    this.cluster = cluster;
    this.node = node;
    this.kubectl = kubectlOf(cluster);
    this.registry = registry;
    this.namespace = namespace;
    this.#ends = [async () => registry[Symbol.asyncDispose]()];
  }

  static async lay(prefix: string): Promise<Ground> {
    const cluster = await startNode();
    assert.ok(cluster.node);
    const registry = await serveTools(cluster.node);
    try {
      await installAmbit(cluster);
      const ground = new Ground(cluster, cluster.node, registry, `${prefix}-${randomBytes(4).toString("hex")}`);
      await ground.addNamespace(ground.namespace);
      return ground;
    } catch (thrown) {
      await registry[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Makes a namespace that takes only pods of the restricted profile, and goes with the suite. */
  async addNamespace(name: string): Promise<void> {
    await apply(this.kubectl, restrictedNamespace(name));
    this.atTheEnd(async () => void (await this.kubectl(["delete", "namespace", name, "--wait=false", "--ignore-not-found"])));
  }

  /** What came last ends first. */
  atTheEnd(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }

  /** kubectl in the suite's namespace. */
  readonly kubectlHere: Kubectl = (args, input) => this.kubectl(["--namespace", this.namespace, ...args], input);

  async read<T>(kind: string, name: string): Promise<T> {
    return JSON.parse(await this.kubectlHere(["get", kind, name, "-o", "json"]));
  }

  async readAll<T>(kind: string, ...args: string[]): Promise<readonly T[]> {
    return JSON.parse(await this.kubectlHere(["get", kind, ...args, "-o", "json"])).items;
  }

  /** Makes or changes a Workload. */
  async applyWorkload(name: string, components: readonly object[], spec: object = {}): Promise<void> {
    await apply(this.kubectl, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name, namespace: this.namespace },
      spec: { components, ...spec },
    });
  }

  /** Puts a value into a Workload's spec, under a JSON Pointer from there on. */
  async patchWorkload(name: string, path: string, value: unknown): Promise<void> {
    const patch = JSON.stringify([{ op: "add", path: `/spec${path}`, value }]);
    await this.kubectlHere(["patch", "workload", name, "--type=json", `--patch=${patch}`]);
  }

  readonly workload = (name: string): Promise<Workload> => this.read<Workload>("workloads", name);

  /** Waits until a condition of a Workload, about the spec as it is now, is so; gives its message. */
  async workloadIs(name: string, type: string, status: string, reason?: string): Promise<string> {
    let last: Workload | undefined;
    const condition = () => last?.status?.conditions?.find((one) => one.type === type);
    await eventually(
      `${name} is ${type}=${status} ${reason ?? ""}`,
      async () => {
        last = await this.workload(name);
        const { status: is, reason: why, observedGeneration } = condition() ?? {};
        return is === status && (reason === undefined || why === reason) && observedGeneration === last.metadata.generation;
      },
      async () => last?.status,
    );
    return condition()?.message ?? "";
  }

  readonly grant = (name: string): Promise<ToolGrant> => this.read<ToolGrant>("toolgrants", name);

  /** Waits until the operator has judged a grant as it is now, and found this. */
  async grantIs(name: string, phase: "Draft" | "Active" | "Drifted" | "Withheld" | "Invalid"): Promise<ToolGrant> {
    let last: ToolGrant | undefined;
    await eventually(
      `${name} is ${phase}`,
      async () => {
        last = await this.grant(name);
        return last.status?.phase === phase && last.status.observedGeneration === last.metadata.generation;
      },
      async () => last?.status,
    );
    assert.ok(last);
    return last;
  }

  /** Waits for the draft of a Workload's function or listed tool, or of its only one, with what there is to review. */
  async drafted(workload: string, toolName?: string): Promise<string> {
    let name = "";
    await eventually(
      `there is a draft for ${workload}`,
      async () => {
        const grants = await this.readAll<ToolGrant>("toolgrants");
        const draft = grants.find(
          ({ spec, status }) =>
            spec.tool.workload === workload &&
            (toolName === undefined || spec.tool.function === toolName || spec.tool.tool === toolName) &&
            status?.phase === "Draft" &&
            status.observed?.text !== undefined,
        );
        name = draft?.metadata.name ?? "";
        return name !== "";
      },
      () => this.workload(workload),
    );
    return name;
  }

  /** Pods of a Workload that are not going. */
  async podsOf<T extends { readonly metadata: object } = Pod>(workload: string): Promise<readonly T[]> {
    const pods = await this.readAll<T>("pods", `--selector=ambit.dev/workload=${workload}`);
    return pods.filter(({ metadata }) => !("deletionTimestamp" in metadata));
  }

  async onlyPodOf(workload: string): Promise<Pod> {
    const [pod, another] = await this.podsOf(workload);
    assert.ok(pod && !another, `${workload} has one pod`);
    return pod;
  }
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: {
    readonly podIP: string;
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
}
