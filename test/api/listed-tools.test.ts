import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import type { UntypedTool } from "../../src/api/untyped.ts";
import { approve } from "../../src/grants/approve.ts";
import { toolOfDefinition } from "../../src/grants/definition-function.ts";
import { draftObjectName } from "../../src/grants/draft.ts";
import { type ListedDefinition, toolListing } from "../../src/grants/listing.ts";
import { isConflict } from "../../src/kube/api-error.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { objectPath } from "../../src/kube/object.ts";
import { namespaces, toolGrants, workloads } from "../../src/kube/resource-types.ts";
import type { ComponentStore } from "../../src/operator/component-store.ts";
import type { ClusterToolGrant } from "../../src/operator/kinds.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { clientAs } from "./client-as.ts";
import { runControllers } from "./operator-under-test.ts";

const withinMs = 20_000;

/** Without the prototypes that parsed objects lack. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const reason = whyNoApiServer();

describe("the grants of a component that lists its own tools", { skip: reason ?? false }, () => {
  const namespace = `ambit-listed-${randomBytes(4).toString("hex")}`;
  const key = { namespace, workload: "issues", component: "bridge" };
  const code = sha256Of("bridge");
  const components: ComponentStore = {
    fetch: async (_, { image }) => ({
      digest: code,
      resolved: image,
      bytes: async () => new Uint8Array(),
      interface: {
        imports: [],
        exports: [{ id: "ambit:tool/untyped@0.1.0", kind: "instance" }],
        functions: [],
        isAsynchronous: false,
        docs: { sources: [] },
      },
    }),
  };
  const listings = new ToolListings();
  let server: ApiServer;
  let client: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    await client.create(namespaces, { metadata: { name: namespace } });
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, listings));
    const body = {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: key.workload, namespace },
      spec: { components: [{ name: key.component, image: `registry.test/bridge@sha256:${"0".repeat(64)}` }] },
    };
    await client.request({
      method: "PATCH",
      path: objectPath(workloads, body.metadata),
      query: { fieldManager: "git" },
      contentType: "application/apply-patch+yaml",
      body,
    });
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    await client?.delete(namespaces, { name: namespace });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const listed = (name: string, changes: Partial<ListedDefinition> = {}): ListedDefinition => ({
    name,
    description: "List the issues.",
    inputSchema: '{"type":"object","properties":{"repo":{"type":"string","default":null}}}',
    ...changes,
  });
  const tell = (...tools: ListedDefinition[]): void => listings.set(key, code, toolListing({ server: "issues" }, tools));
  const nameOf = (tool: string): string => draftObjectName({ workload: key.workload, component: key.component, tool });
  const read = (tool: string) => client.get<ClusterToolGrant>(toolGrants, { name: nameOf(tool), namespace }).catch(() => null);
  const when = async (tool: string, holds: (grant: ClusterToolGrant | null) => boolean): Promise<ClusterToolGrant | null> => {
    let last: ClusterToolGrant | null = null;
    const came = await becomes(async () => {
      last = await read(tool);
      return holds(last);
    }, withinMs);
    assert.ok(came, `${tool} becomes so, and is ${JSON.stringify(last)}`);
    return last;
  };
  const isPhase = (phase: string) => (grant: ClusterToolGrant | null) =>
    grant?.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation;

  const approveAsSeen = async (tool: string): Promise<void> => {
    const seen = await when(tool, (grant) => grant?.status?.observed?.reach !== undefined);
    const { text = "", reach } = seen?.status?.observed ?? {};
    assert.ok(seen && reach);
    const subjects = [{ kind: "ServiceAccount", name: "triage", namespace }] as const;
    const approved = approve({
      grant: { ...seen, spec: { ...seen.spec, subjects, mutates: false } },
      fn: toolOfDefinition(text) as UntypedTool,
      reach,
      component: [code],
      now: new Date(),
    });
    try {
      await client.replace<ClusterToolGrant>(toolGrants, approved as ClusterToolGrant);
    } catch (thrown) {
      if (!isConflict(thrown)) throw thrown;
      await approveAsSeen(tool);
    }
  };

  test("there are drafts once a host has told, and only for what it lists", async () => {
    tell(listed("list_issues"), listed("Close Issue"));
    const draft = await when("list_issues", isPhase("Draft"));
    assert.deepEqual(plain(draft?.spec.tool), { workload: "issues", component: "bridge", tool: "list_issues" });
    assert.deepEqual(plain(draft?.spec.declaration), {
      name: "list_issues",
      description: "List the issues.",
      parameters: { type: "object", properties: { repo: { type: "string" } }, additionalProperties: false },
    });
    assert.equal((await when("Close Issue", isPhase("Draft")))?.spec.declaration.name, "");
  });

  test("an approved one is live, is withheld with other words, and restored with the same", async () => {
    await approveAsSeen("list_issues");
    assert.deepEqual((await when("list_issues", isPhase("Active")))?.status?.components, [code]);

    tell(listed("list_issues", { description: "List the issues, and delete them." }));
    const drifted = await when("list_issues", isPhase("Drifted"));
    assert.deepEqual(plain(drifted?.status?.changes), [
      { path: "/definition/description", before: "List the issues.", after: "List the issues, and delete them." },
    ]);

    tell(listed("list_issues"));
    await when("list_issues", isPhase("Active"));
  });

  test("a draft goes with its tool, and a grant that a person has approved stays, withheld", async () => {
    tell(listed("another"));
    await when("Close Issue", (grant) => grant === null);
    const gone = await when("list_issues", isPhase("Drifted"));
    assert.equal(gone?.status?.conditions?.find(({ type }) => type === "Stalled")?.reason, "FunctionNotOffered");
    await when("another", isPhase("Draft"));
  });

  test("nothing failed meanwhile", () => {
    assert.deepEqual(operator.failures, []);
  });
});
