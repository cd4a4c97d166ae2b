import assert from "node:assert/strict";
import { test } from "node:test";
import type { McpServer, WorkloadComponent, WorkloadSpec } from "../../../src/api/generated/workload.ts";
import type { WitImport } from "../../../src/api/wit.ts";
import { reachOf } from "../../../src/grants/reach.ts";
import { componentOfTool, givenSources, sandboxedComponents } from "../../../src/grants/sandboxed-component.ts";

const limits = { timeout: "30s", memory: "256Mi", resultBytes: "1Mi", concurrency: 4 } as const;

const component = (name: string, allowedHosts: readonly string[] = []): WorkloadComponent => ({
  name,
  image: `example/${name}@sha256:${"a".repeat(64)}`,
  limits,
  reuse: { calls: 1 },
  localResources: { allowedHosts },
});

const spec = (components: readonly WorkloadComponent[], mcpServers: readonly McpServer[]): WorkloadSpec => ({
  replicas: 1,
  components,
  mcpServers,
  allowTags: false,
  draftGrants: true,
  suspend: false,
});

const remote = (url: string): WorkloadSpec => spec([], [{ name: "linear", limits, remote: { url, headersFrom: [{ name: "token" }] } }]);

const outgoing: WitImport = {
  id: "wasi:http/outgoing-handler@0.2.6",
  kind: "instance",
  functions: ["handle"],
  resources: [],
};

const origins: Record<string, string> = {
  "https://mcp.example.com/mcp": "https://mcp.example.com",
  "https://mcp.example.com:443/mcp": "https://mcp.example.com",
  "https://MCP.Example.com:8443?a=b": "https://mcp.example.com:8443",
  "http://[2001:db8::1]:8080/": "http://[2001:db8::1]:8080",
};

for (const [url, origin] of Object.entries(origins)) {
  test(`the bridge to ${url} may reach ${origin} and nothing else`, () => {
    const [bridge] = sandboxedComponents(remote(url));
    assert.deepEqual(bridge?.localResources?.allowedHosts, [origin]);
    assert.equal(bridge.localResources?.environment?.config?.MCP_URL, url);
    assert.deepEqual(reachOf(remote(url), "linear", [outgoing]), { hosts: [origin], volumes: [], secrets: ["token"], imports: [] });
  });
}

test("a server's component is marked as one, and its bridge has no host of its own", () => {
  const workload = spec(
    [component("issues-mcp", ["api.example.com"]), component("other")],
    [{ name: "issues", component: "issues-mcp", limits }],
  );
  const [server, other, bridge] = sandboxedComponents(workload);
  assert.deepEqual([server?.name, server?.serves], ["issues-mcp", "issues"]);
  assert.deepEqual([other?.name, other?.serves], ["other", undefined]);
  assert.deepEqual(bridge?.localResources?.allowedHosts, []);
  assert.equal(bridge.localResources?.environment?.config?.MCP_URL, "http://issues-mcp/mcp");
  assert.deepEqual(bridge.bridge, { kind: "component", component: "issues-mcp" });
});

test("an MCP server's own reach is its tools' reach", () => {
  const workload = spec([component("issues-mcp", ["api.example.com"])], [{ name: "issues", component: "issues-mcp", limits }]);
  assert.deepEqual(reachOf(workload, "issues", [outgoing]), {
    hosts: ["api.example.com"],
    volumes: [],
    secrets: [],
    imports: [outgoing.id],
  });
});

test("a server's secrets are its tools' reach, and given to it and not to its bridge", () => {
  const server = component("issues-mcp");
  const environment = { configFrom: [{ name: "settings" }], secretFrom: [{ name: "token" }] };
  const workload = spec([{ ...server, localResources: { environment } }], [{ name: "issues", component: "issues-mcp", limits }]);
  assert.deepEqual(reachOf(workload, "issues", []).secrets, ["token"]);
  assert.deepEqual(sandboxedComponents(workload).map(givenSources), [
    [
      { kind: "ConfigMap", name: "settings", as: "environment" },
      { kind: "Secret", name: "token", as: "environment" },
    ],
    [],
  ]);
});

test("the bridge to a remote server is given its secrets as headers", () => {
  assert.deepEqual(sandboxedComponents(remote("https://mcp.example.com")).map(givenSources), [
    [{ kind: "Secret", name: "token", as: "headers" }],
  ]);
});

test("a grant finds a bridge as an MCP server alone, and a component as one alone", () => {
  const workload = spec([component("issues-mcp")], [{ name: "issues", component: "issues-mcp", limits }]);
  assert.equal(componentOfTool(workload, { mcpServer: "issues" })?.name, "issues");
  assert.equal(componentOfTool(workload, { component: "issues-mcp" })?.name, "issues-mcp");
  assert.equal(componentOfTool(workload, { component: "issues" }), undefined);
  assert.equal(componentOfTool(workload, { mcpServer: "issues-mcp" }), undefined);
  assert.equal(componentOfTool(workload, {}), undefined);
});
