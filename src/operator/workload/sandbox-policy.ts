import { Stalled } from "../../api/errors.ts";
import { isNotFound } from "../../kube/api-error.ts";
import type { Applier } from "../../kube/apply.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { keyText } from "../../kube/object.ts";
import { networkPolicies } from "../../kube/resource-types.ts";
import type { Store } from "../../kube/store.ts";
import { labels, managedByAmbit } from "../names.ts";
import { sandboxPolicy, sandboxPolicyName } from "./desired.ts";
import type { NetworkPolicy } from "./kinds.ts";

export interface SandboxPoliciesOptions {
  readonly client: ClusterClient;
  readonly applier: Applier;
  readonly store: Store<NetworkPolicy>;
  /** Ambit's own namespace. */
  readonly ambit: string;
}

/**
 * The policy before all sandboxes, one in each namespace that has any. Workloads share it, so what is done about it in one namespace happens one after the other: it can't go
 * for one Workload while another has just seen it there.
 */
export class SandboxPolicies {
  readonly #options: SandboxPoliciesOptions;
  readonly #busy = new Map<string, Promise<unknown>>();

  constructor(options: SandboxPoliciesOptions) {
    this.#options = options;
  }

  /** Makes it, or makes it right again. Rejects with `Stalled` (`ForeignObject`) where another object has its name. */
  stands(namespace: string, signal: AbortSignal): Promise<void> {
    return this.#oneByOne(namespace, async () => {
      const { applier, ambit } = this.#options;
      const live = await this.#live(namespace, signal);
      await applier.apply<NetworkPolicy>(
        networkPolicies,
        sandboxPolicy(namespace, ambit),
        live ? { live, force: true, signal } : { mustBeNew: true, signal },
      );
    });
  }

  /** Removes it, unless `isNeeded` says at the last moment that somebody needs it. */
  goes(namespace: string, isNeeded: () => boolean, signal: AbortSignal): Promise<void> {
    return this.#oneByOne(namespace, async () => {
      const { client, applier, store } = this.#options;
      const live = store.get(keyText({ namespace, name: sandboxPolicyName }));
      if (!live || isNeeded()) return;
      await client.delete(
        networkPolicies,
        { namespace, name: sandboxPolicyName },
        live.metadata.uid ? { uid: live.metadata.uid } : {},
        signal,
      );
      // Else it would be taken for settled until the store hears that it has gone.
      applier.forget(networkPolicies, { namespace, name: sandboxPolicyName });
    });
  }

  async #live(namespace: string, signal: AbortSignal): Promise<NetworkPolicy | undefined> {
    const { client, store } = this.#options;
    const key = { namespace, name: sandboxPolicyName };
    const known = store.get(keyText(key)) ?? (await client.get<NetworkPolicy>(networkPolicies, key, signal).catch(undefinedIfMissing));
    if (known && known.metadata.labels?.[labels.managedBy] !== managedByAmbit) {
      throw new Stalled(
        "ForeignObject",
        `the NetworkPolicy ${namespace}/${sandboxPolicyName} belongs to somebody else and is left alone; rename or delete it, since no sandbox runs without ours`,
      );
    }
    return known;
  }

  async #oneByOne(namespace: string, work: () => Promise<void>): Promise<void> {
    const before = this.#busy.get(namespace) ?? Promise.resolve();
    // What went wrong for the one before is told to its own caller.
    const mine = before.then(work, work);
    this.#busy.set(namespace, mine);
    try {
      await mine;
    } finally {
      if (this.#busy.get(namespace) === mine) this.#busy.delete(namespace);
    }
  }
}

const undefinedIfMissing = (thrown: unknown): undefined => {
  if (isNotFound(thrown)) return undefined;
  throw thrown;
};
