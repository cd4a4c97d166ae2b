import type { Sha256Digest } from "../../api/digest.ts";
import { AmbitError, Transient, Waiting } from "../../api/errors.ts";
import { sandboxedComponents } from "../../grants/sandboxed-component.ts";
import { keyText } from "../../kube/object.ts";
import type { OperatorContext } from "../context.ts";
import type { ClusterWorkload } from "../kinds.ts";
import type { HostPod } from "./host-pod.ts";

/** Bytes that hash to the digest, if they are kept. */
export type CachedBytes = (digest: Sha256Digest) => Promise<Uint8Array | null>;

/** When a pod whose code nobody names any more is looked at again; a rollout has ended it by then. */
const replacedMs = 30_000;

/** When an image that can't be pulled is tried again for a pod: the Workload's own reconciler says what is wrong with it. */
const unavailableMs = 60_000;

/**
 * The bytes of the component that a pod was made for: those that its Workload names, or during a rollout what was pulled before. A host takes no others, whatever this gives.
 *
 * Throws `Waiting` (`ComponentReplaced`, and the code of a pull that a person must mend) and `Transient`.
 */
export const componentBytes =
  ({ stores, components }: Pick<OperatorContext, "stores" | "components">, cached: CachedBytes = async () => null) =>
  async ({ of }: HostPod, digest: Sha256Digest, signal: AbortSignal): Promise<Uint8Array> => {
    const workload = stores.workloads.get(keyText({ namespace: of.namespace, name: of.workload }));
    const kept = workload && wasTheirs(stores, workload, digest) ? await cached(digest) : null;
    if (kept !== null) return kept;
    const component = workload && sandboxedComponents(workload.spec).find(({ name }) => name === of.component);
    const stored = workload && component && (await components.fetch(workload, component, signal).catch(notTheHosts));
    if (stored?.digest === digest) return stored.bytes().catch(notTheHosts);
    throw new Waiting(
      "ComponentReplaced",
      "the Workload names other code than the pod was made for, and that is not kept any more",
      replacedMs,
    );
  };

/**
 * Whether this is code that the Workload was found to have, as statuses say, which the operator alone writes. What a pod says of itself is not asked: whoever makes pods could have any
 * component that was ever pulled.
 */
const wasTheirs = ({ toolGrants }: OperatorContext["stores"], workload: ClusterWorkload, digest: Sha256Digest): boolean =>
  (workload.status?.components ?? []).some((component) => component.digest === digest) ||
  toolGrants
    .find("workload", keyText(workload.metadata))
    .some(({ status }) => (status?.images ?? []).some((image) => image.component === digest));

/** What is wrong with an image is no refusal of the host's, and may be mended without any change of the pod. */
const notTheHosts = (thrown: unknown): never => {
  if (!(thrown instanceof AmbitError) || thrown instanceof Transient || thrown instanceof Waiting) throw thrown;
  throw new Waiting(thrown.code, thrown.message, unavailableMs, { cause: thrown });
};
