import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type AuditedRequest, auditedRequests, auditText } from "./audit.ts";
import { eventually, fixture, Ground, whyNoGround } from "./ground.ts";
import { ambitNamespace } from "./installed.ts";

/** The last of the suites, by its name: what Ambit asked of the API server in all of them, and in the ends of their namespaces. */

const reason = await whyNoGround();

const accounts = ["operator", "catalogue"].map((part) => `system:serviceaccount:${ambitNamespace}:ambit-${part}`);

/** Pull secrets that a suite has it ask for: one that nobody let it read, and one of a role that the API server may not know yet. */
const provoked = ["theirs", "nowhere"];

const isProvoked = ({ verb, objectRef }: AuditedRequest): boolean =>
  verb === "get" && objectRef?.resource === "secrets" && provoked.includes(objectRef.name ?? "");

/** That the account has no such right, rather than that the request could not be done. */
const isForWantOfRight = ({ verb, responseStatus }: AuditedRequest): boolean =>
  responseStatus?.message?.includes(` cannot ${verb} resource `) ?? false;

describe("whatever Ambit asked of the API server", { skip: reason ?? false }, () => {
  let ground: Ground;

  before(async () => {
    ground = await Ground.lay("refused");
  });

  after(() => ground?.[Symbol.asyncDispose]());

  /** Whether the account has the right: an API server that has just begun refuses everybody, until it has read who may do what. */
  const mayNow = async ({ verb, user, objectRef: { apiGroup: group, ...of } = {} }: AuditedRequest): Promise<boolean> => {
    const { namespace, resource, subresource, name } = of;
    const resourceAttributes = { verb, group, namespace, resource, subresource, name };
    const review = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: { user: user.username, resourceAttributes },
    };
    const { status, body } = await ground.cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review);
    assert.equal(status, 201, body);
    return JSON.parse(body).status.allowed;
  };

  test("in a namespace that ends, with a Workload and a draft in it, and everywhere else, it was allowed to", async (t) => {
    const ending = `${ground.namespace}-ending`;
    await ground.addNamespace(ending);
    const image = await ground.registry.push("tools/mission", fixture("mission"));
    await ground.kubectl(["--namespace", ending, "apply", "--filename", "-"], {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "github" },
      spec: { components: [{ name: "github", image }] },
    });
    await ground.kubectl(["--namespace", ending, "wait", "workload/github", "--for=condition=Ready", "--timeout=90s"]);
    await ground.kubectl(["delete", "namespace", ending, "--wait=false"]);
    const ends = () => ground.kubectl(["get", "namespaces", "-o", "jsonpath={.items[?(@.status.phase=='Terminating')].metadata.name}"]);
    await eventually("the namespaces of all suites have ended", async () => (await ends()).trim() === "", ends);

    const asked = new Map(accounts.map((account) => [account, 0]));
    const refused: AuditedRequest[] = [];
    for await (const request of auditedRequests(ground.node.auditLog)) {
      const before = asked.get(request.user.username);
      if (before === undefined) continue;
      asked.set(request.user.username, before + 1);
      if (request.responseStatus?.code === 403 && !isProvoked(request)) refused.push(request);
    }
    const inEarnest: string[] = [];
    for (const request of refused) if (!isForWantOfRight(request) || !(await mayNow(request))) inEarnest.push(auditText(request));
    t.diagnostic(`${refused.length - inEarnest.length} requests came to an API server that had just begun`);
    t.diagnostic([...asked].map(([account, times]) => `${account} asked ${times} times`).join(", "));
    for (const [account, times] of asked) assert.ok(times > 10, `what ${account} asked is in the log: ${times} times`);
    assert.deepEqual(inEarnest, []);
  });
});
