import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client } from "undici";
import type { HostConfig } from "../../src/api/host.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../../src/host/node-arguments.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath } from "../../src/kube/object.ts";
import { controlledBy } from "../../src/kube/owned.ts";
import { configMaps, deployments, pods } from "../../src/kube/resource-types.ts";
import { replicaSets } from "../../src/operator/delivery/confirm.ts";
import { hopPort, hostPort } from "../../src/operator/names.ts";
import { temporaryFolder } from "../integration/host-under-test.ts";

interface DeploymentObject extends ClusterObject {
  readonly spec: {
    readonly selector: object;
    readonly template: ClusterObject & {
      readonly spec: { readonly volumes: readonly { readonly configMap?: { readonly name: string } }[] };
    };
  };
}

/** A pod whose host really runs, at an address of this machine that nobody else has. */
export interface RunningPod {
  readonly name: string;
  readonly address: string;
  isReady(): Promise<boolean>;
  /** As when the kubelet has found it ready. */
  becameReady(): Promise<void>;
  /** Takes it away, from the API server first. */
  end(): Promise<void>;
}

/** Runs a pod of a Deployment as a node would: with what its template says, the ports that the operator expects, and a status. */
export const runPodOf = async (client: ClusterClient, namespace: string, deployment: string, name: string): Promise<RunningPod> => {
  const of = await client.get<DeploymentObject>(deployments, { namespace, name: deployment });
  const { template, selector } = of.spec;
  const configName = template.spec.volumes.flatMap(({ configMap }) => configMap ?? [])[0]?.name ?? "";
  const { data } = await client.get<ClusterObject & { data: Record<string, string> }>(configMaps, { namespace, name: configName });
  const { labels = {}, annotations = {} } = template.metadata;
  const containers = [{ name: "host", image: "ambit" }];
  const replicaSet = await client.create<ClusterObject>(replicaSets, {
    metadata: { name, namespace, labels, ownerReferences: [controlledBy(of)] },
    spec: { selector, template: { metadata: { labels }, spec: { containers } } },
  } as ClusterObject);
  const pod = await client.create<ClusterObject>(pods, {
    metadata: { name, namespace, labels, annotations, ownerReferences: [controlledBy(replicaSet)] },
    spec: { containers },
  } as ClusterObject);

  const address = `127.${randomInt(1, 255)}.${randomInt(0, 255)}.${randomInt(1, 255)}`;
  const config: HostConfig = JSON.parse(data["config.json"] ?? "");
  const child = await startHost({
    ...config,
    podUid: pod.metadata.uid ?? "",
    listen: { address, port: hostPort },
    ...(config.serve && { serve: { address, port: hopPort } }),
    cacheFolder: temporaryFolder(),
  });
  const path = objectPath(pods, { name, namespace });
  const patchStatus = (status: object): Promise<unknown> =>
    client.request({ method: "PATCH", path: `${path}/status`, contentType: "application/merge-patch+json", body: { status } });
  const startedAt = new Date().toISOString().replace(/\.\d+/, "");
  const container = { name: "host", image: "ambit", imageID: "", ready: false, restartCount: 0, containerID: `containerd://${name}` };
  await patchStatus({
    phase: "Running",
    podIP: address,
    podIPs: [{ ip: address }],
    containerStatuses: [{ ...container, state: { running: { startedAt } } }],
  });
  return {
    name,
    address,
    isReady: () => probe(address),
    becameReady: async () => void (await patchStatus({ conditions: [{ type: "Ready", status: "True" }] })),
    end: async () => {
      await client.request({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
};

const startHost = async (config: HostConfig): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [...hostArguments(config), hostEntry, "-"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: hostEnvironment(config),
  });
  child.stdin.on("error", () => undefined);
  child.stdin.write(`${JSON.stringify(config)}\n`);
  const lines = createInterface({ input: child.stdout });
  await once(lines, "line");
  return child;
};

const probe = async (address: string): Promise<boolean> => {
  const client = new Client(`https://${address}:${hostPort}`, { connect: { rejectUnauthorized: false } });
  try {
    const { statusCode, body } = await client.request({ method: "GET", path: "/readyz" });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  } finally {
    await client.destroy();
  }
};
