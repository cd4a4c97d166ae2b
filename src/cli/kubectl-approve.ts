import { isDeepStrictEqual } from "node:util";
import { isSha256Digest } from "../api/digest.ts";
import { Invalid, Refused } from "../api/errors.ts";
import { digestOfDefinitionText } from "../grants/definition.ts";
import { toolOfDefinition } from "../grants/definition-function.ts";
import { ApiError, isConflict } from "../kube/api-error.ts";
import type { ClusterClient } from "../kube/client.ts";
import { objectPath } from "../kube/object.ts";
import { toolGrants } from "../kube/resource-types.ts";
import type { ClusterToolGrant } from "../operator/kinds.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { type ApprovalOptions, approveOrHint, askFor, codeToApprove, completed, shownGrant } from "./approval.ts";
import { type ClusterGrants, type ClusterOptions, changesOf, observedOf, withClusterGrants } from "./cluster-grants.ts";
import { grantManifest } from "./manifest-text.ts";
import type { Terminal } from "./terminal.ts";

export interface KubectlApproveOptions extends ApprovalOptions, ClusterOptions {
  readonly alsoComponent?: string;
  readonly reviewer?: string;
  readonly json?: boolean;
}

/** Who approves owns what approving writes. */
const fieldManager = "ambit-approve";

/** Approves grants in a cluster, one after the other: exactly what was shown, or nothing where it changed meanwhile. */
export const kubectlApprove = (terminal: Terminal, names: readonly string[], options: KubectlApproveOptions): Promise<void> =>
  withClusterGrants(options, async (grants) => {
    const reviewer = options.reviewer ?? (await accountName(grants.client));
    for (const name of names) await approveOne(terminal, grants, name, { ...options, ...(reviewer === null ? {} : { reviewer }) });
  });

const approveOne = async (terminal: Terminal, grants: ClusterGrants, name: string, options: KubectlApproveOptions): Promise<void> => {
  const found = await grants.get(name);
  const observed = observedOf(found);
  if (digestOfDefinitionText(observed.text) !== observed.digest || !isSha256Digest(observed.component))
    throw new Invalid("StatusMalformed", `the status of ${name} does not fit itself: its definition has another digest than it says`);
  const grant = completed(found, options);
  const code = observed.code === undefined ? observed.component : observed.code;
  if (code !== "any" && !isSha256Digest(code)) throw new Invalid("StatusMalformed", `the status of ${name} names no code`);
  const component = withAlso(codeToApprove(grant, code, options), options.alsoComponent);
  const { reach } = observed;
  const fn = toolOfDefinition(observed.text);
  if (!options.json) terminal.err(shownGrant(terminal, { grant, reach, component, changes: changesOf(found), fn }));
  const { reviewer, note } = options;
  const approved = approveOrHint({
    grant,
    fn,
    reach,
    component,
    now: new Date(terminal.now()),
    allowHidden: options.allowHidden.map((codePoint) => codePoint.toUpperCase()),
    assertUsableSchema,
    ...(reviewer === undefined ? {} : { reviewer }),
    ...(note === undefined ? {} : { note }),
  });
  if (!options.yes) await askFor(terminal, approved);
  await write(grants, approved as ClusterToolGrant, found);
  terminal.err(`Approved ${name}. Where Git applies it, commit this:\n`);
  terminal.out(options.json ? `${JSON.stringify({ approved: name, review: approved.spec.review })}\n` : `---\n${grantManifest(approved)}`);
};

/** Code that is to run next, listed before it does, so that a rollout loses no call. */
const withAlso = (component: ReturnType<typeof codeToApprove>, also: string | undefined): ReturnType<typeof codeToApprove> => {
  if (also === undefined || component === "any") return component;
  if (!isSha256Digest(also))
    throw new Invalid("DigestInvalid", `--also-component takes sha256: and 64 hexadecimal digits, not ${JSON.stringify(also)}`);
  return [...new Set([...component, also])];
};

/** How often a grant whose status alone changes meanwhile is tried again. */
const attempts = 5;

/**
 * Writes an approval with the resource version of what was shown, so that nothing that changed since is approved. The operator may write the status while a person reads, which
 * makes another version of the same grant: that one is approved where all that was shown is as it was. Throws `Refused` (`GrantChanged`).
 */
const write = async ({ client, get }: ClusterGrants, approved: ClusterToolGrant, shown: ClusterToolGrant): Promise<void> => {
  let current = shown;
  for (let attempt = 0; attempt < attempts && isDeepStrictEqual(reviewedIn(current), reviewedIn(shown)); attempt++) {
    try {
      await replace(client, approved, current);
      return;
    } catch (thrown) {
      if (!isConflict(thrown)) throw thrown;
      current = await get(approved.metadata.name);
    }
  }
  throw new Refused("GrantChanged", `${approved.metadata.name} changed since it was shown and is not approved; look at it again`);
};

const replace = async (client: ClusterClient, { status: _, ...approved }: ClusterToolGrant, current: ClusterToolGrant): Promise<void> => {
  const { resourceVersion, managedFields } = current.metadata;
  const metadata = { ...approved.metadata, resourceVersion, managedFields };
  await client.request({
    method: "PUT",
    path: objectPath(toolGrants, metadata),
    query: { fieldManager, fieldValidation: "Strict" },
    body: { ...approved, metadata },
  });
};

/** What a reviewer was shown, and what goes out with the approval: everything but the rest of the status. */
const reviewedIn = ({ metadata, spec, status }: ClusterToolGrant): object => {
  const { uid, generation, labels, annotations, ownerReferences, finalizers } = metadata;
  return { uid, generation, labels, annotations, ownerReferences, finalizers, spec, observed: status?.observed, changes: status?.changes };
};

/** Who the API server takes us for; null where it doesn't say. */
const accountName = async (client: ClusterClient): Promise<string | null> => {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  try {
    const answer = await client.request({ method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: review });
    return (answer as { status?: { userInfo?: { username?: string } } } | null)?.status?.userInfo?.username ?? null;
  } catch (thrown) {
    // The name is informative, and some clusters tell it to nobody.
    if (thrown instanceof ApiError && (thrown.code === "Forbidden" || thrown.code === "NotFound")) return null;
    throw thrown;
  }
};
