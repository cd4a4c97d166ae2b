import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath } from "../../src/kube/object.ts";
import { configMaps, namespaces, toolGrants } from "../../src/kube/resource-types.ts";
import { agentsAuthority, agentsLabel, catalogueAuthority } from "../../src/operator/agents-ca.ts";
import { ownObjects } from "../../src/operator/names.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

type WithData = ClusterObject & { readonly data?: Readonly<Record<string, string>> };

describe("the authority that agents check the catalogue by", { skip: whyNoApiServer() ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const [tools, agents, labelled, theirs] = ["tools", "agents", "labelled", "theirs"].map((name) => `ambit-ca-${name}-${suffix}`);
  const all = [tools, agents, labelled, theirs].filter((name) => name !== undefined);
  let server: ApiServer;
  let client: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    for (const name of all) await client.create(namespaces, { metadata: { name } });
    operator = await runControllers(client, new MadeUpComponents(), (context) => [agentsAuthority(context, "the certificate")]);
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    for (const name of all) await client?.delete(namespaces, { name });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const authority = async (namespace: string | undefined): Promise<string | null> =>
    (await client.get<WithData>(configMaps, { namespace: namespace ?? "", name: ownObjects.ca }).catch(() => null))?.data?.[
      catalogueAuthority
    ] ?? null;
  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => assert.ok(await becomes(holds, 20_000), what);
  const label = (name: string | undefined, value: string | null): Promise<unknown> =>
    client.request({
      method: "PATCH",
      path: objectPath(namespaces, { name: name ?? "" }),
      contentType: "application/merge-patch+json",
      body: { metadata: { labels: { [agentsLabel]: value } } },
    });
  const grant = (name: string, subject: string | undefined): Promise<unknown> =>
    client.create<ClusterObject>(toolGrants, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "ToolGrant",
      metadata: { name, namespace: tools ?? "" },
      spec: {
        tool: { workload: "w", component: "c", function: "f" },
        declaration: { name: "f", description: "F.", parameters: { type: "object" } },
        subjects: [{ kind: "ServiceAccount", name: "triage", namespace: subject }],
      },
    } as ClusterObject);
  const setPhase = (name: string, phase: string): Promise<unknown> =>
    client.request({
      method: "PATCH",
      path: objectPath(toolGrants, { name, namespace: tools ?? "" }, "status"),
      contentType: "application/merge-patch+json",
      body: { status: { phase } },
    });

  test("is in a namespace with the label, comes back when it is deleted or changed, and goes with the label", async () => {
    await label(labelled, "true");
    await eventually("it is there", async () => (await authority(labelled)) === "the certificate");
    const key = { namespace: labelled ?? "", name: ownObjects.ca };
    await client.delete(configMaps, key);
    await eventually("it is there again", async () => (await authority(labelled)) === "the certificate");
    const live = await client.get<WithData>(configMaps, key);
    await client.replace<WithData>(configMaps, { ...live, data: { [catalogueAuthority]: "another" } });
    await eventually("it is right again", async () => (await authority(labelled)) === "the certificate");
    await label(labelled, null);
    await eventually("it is gone", async () => (await authority(labelled)) === null);
  });

  test("is where a grant of the same namespace names somebody, and elsewhere once the grant is live, until none names anybody there", async () => {
    await grant("own", tools);
    await grant("other", agents);
    await eventually("it is with the grant", async () => (await authority(tools)) === "the certificate");
    assert.equal(await authority(agents), null);
    await setPhase("other", "Active");
    await eventually("it is with the agents", async () => (await authority(agents)) === "the certificate");
    await setPhase("other", "Drifted");
    await client.delete(toolGrants, { namespace: tools ?? "", name: "own" });
    await eventually("it is gone where nobody is named", async () => (await authority(tools)) === null);
    assert.equal(await authority(agents), "the certificate", "a tool that is withheld may come back");
    await client.delete(toolGrants, { namespace: tools ?? "", name: "other" });
    await eventually("it is gone there too", async () => (await authority(agents)) === null);
  });

  test("takes over nobody's object of that name", async () => {
    await client.create<WithData>(configMaps, {
      metadata: { name: ownObjects.ca, namespace: theirs ?? "" },
      data: { [catalogueAuthority]: "theirs" },
    });
    await label(theirs, "true");
    await label(labelled, "true");
    await eventually("another namespace was looked at", async () => (await authority(labelled)) === "the certificate");
    assert.equal(await authority(theirs), "theirs");
  });

  test("nothing failed", () => assert.deepEqual(operator.failures.map(String), []));
});
