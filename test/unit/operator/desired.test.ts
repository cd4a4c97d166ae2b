import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parse } from "yaml";
import type { Workload, WorkloadComponent } from "../../../src/api/generated/workload.ts";
import { componentPolicy } from "../../../src/egress/network-policy.ts";
import { hopOf, type SandboxedComponent, sandboxedComponents } from "../../../src/grants/sandboxed-component.ts";
import { componentObjects, sandboxPolicy } from "../../../src/operator/workload/desired.ts";
import { component, digest, settings, workload } from "./workload-world.ts";

const golden = (name: string): unknown => parse(readFileSync(new URL(`../../golden/operator/${name}.yaml`, import.meta.url), "utf8"));

const first = (of: Workload): WorkloadComponent => of.spec.components[0] ?? component();

/** As they are sent: what is not written is not there. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("the objects of a component", () => {
  test("of a Workload that says no more than it must", () => {
    const of = workload();
    assert.deepEqual(sent(componentObjects(of, first(of), { digest, watches: false }, 1, settings)), golden("plain"));
  });

  test("of a Workload that says all it can", () => {
    const of = workload({
      replicas: 3,
      components: [
        component({
          localResources: {
            allowedHosts: ["api.github.com"],
            environment: {
              config: { B: "2", A: "1" },
              configFrom: [{ name: "settings" }],
              secretFrom: [{ name: "github-token" }, { name: "team.keys" }],
            },
            volumeMounts: [
              { name: "docs", mountPath: "/docs", readOnly: true },
              { name: "scratch", mountPath: "/scratch", readOnly: false },
              { name: "scratch", mountPath: "/again", readOnly: true },
            ],
          },
          limits: { timeout: "2m", memory: "1Gi", resultBytes: "64Ki", concurrency: 8 },
          reuse: { calls: 100 },
          resources: { requests: { cpu: "1" }, limits: { memory: "4Gi", "ephemeral-storage": "2Gi" } },
        }),
      ],
      volumes: [
        { name: "docs", persistentVolumeClaim: { claimName: "handbook" } },
        { name: "scratch", ephemeral: {} },
        { name: "unused", ephemeral: {} },
      ],
      pod: {
        labels: { team: "agents", "ambit.dev/workload": "another" },
        annotations: { note: "hello" },
        nodeSelector: { disk: "fast" },
        tolerations: [{ key: "tools", operator: "Exists" }],
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }],
        runtimeClassName: "gvisor",
        priorityClassName: "low",
      },
    });
    const image = { ...settings, pullPolicy: "Always", pullSecrets: ["registry"] } as const;
    assert.deepEqual(sent(componentObjects(of, first(of), { digest, watches: false }, 3, image)), golden("full"));
  });

  const served = workload({
    components: [component({ name: "issues-mcp", localResources: { allowedHosts: ["api.example.com"] } })],
    mcpServers: [{ name: "issues", component: "issues-mcp", limits: component().limits }],
  });
  for (const [index, name] of ["mcp-server", "mcp-bridge"].entries()) {
    test(`of an MCP server that is a component, the ${name}, with its policy`, () => {
      const one: SandboxedComponent = sandboxedComponents(served.spec)[index] ?? component();
      const policy = componentPolicy(served.metadata.name, one.name, "ambit-system", [], hopOf(one));
      const { deployment, configMap } = componentObjects(served, one, { digest, watches: false }, 1, settings);
      assert.deepEqual(sent({ configMap, deployment, policy }), golden(name));
    });
  }

  test("the policy before all sandboxes of a namespace lets nothing out, and nobody in but the operator", () => {
    assert.deepEqual(sent(sandboxPolicy("agents")), golden("sandbox-policy"));
  });

  test("another configuration is another ConfigMap, and where nothing in it changes, the pods stay", () => {
    const template = (of: Workload) => {
      const { configMap, deployment } = componentObjects(of, first(of), { digest, watches: false }, 1, settings);
      return { name: configMap.metadata.name, deployment: JSON.stringify(deployment) };
    };
    const before = template(workload());
    const same = workload({ draftGrants: false, components: [component({ tools: { exclude: ["x"] } })] });
    assert.deepEqual(template(same), before);
    const other = template(workload({ components: [component({ localResources: { allowedHosts: ["example.com"] } })] }));
    assert.notEqual(other.name, before.name);
    assert.notEqual(other.deployment, before.deployment);
  });
});

test("the bridge to a remote server alone gets the secrets of its headers", () => {
  const remote = { url: "https://mcp.example.com/mcp", headersFrom: [{ name: "login" }] };
  const of = workload({ components: [component()], mcpServers: [{ name: "linear", limits: component().limits, remote }] });
  const made = sandboxedComponents(of.spec).map((one) => componentObjects(of, one, { digest, watches: true }, 1, settings));
  const [beside, bridge] = made.map(({ configMap, deployment }) => JSON.stringify([configMap, deployment]));
  assert.doesNotMatch(beside ?? "", /login|headers/);
  const folder = "/var/lib/ambit/given/secrets/login";
  const [config] = made.slice(1).map(({ configMap }) => JSON.parse(String((configMap.data as Record<string, string>)["config.json"])));
  assert.deepEqual(config.secretFolders, [{ name: "the Secret login", folder, as: "headers" }]);
  assert.ok(bridge?.includes(`{"name":"secret-login","mountPath":"${folder}","readOnly":true}`));
  assert.ok(bridge?.includes('{"name":"secret-login","secret":{"secretName":"login","defaultMode":288}}'));
});

test("a component that waits for changes has memory for one instance more", () => {
  const of = workload();
  const limitOf = (watches: boolean): string | undefined => {
    const { deployment } = componentObjects(of, first(of), { digest, watches }, 1, settings);
    return /"limits":\{"cpu":"4","memory":"(\w+)"/.exec(JSON.stringify(deployment))?.[1];
  };
  assert.deepEqual([limitOf(false), limitOf(true)], ["1280Mi", "1536Mi"]);
});
