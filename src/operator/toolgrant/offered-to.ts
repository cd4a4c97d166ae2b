import type { ToolGrant } from "../../api/generated/toolgrant.ts";
import { serviceAccountCaller } from "../../catalogue/caller.ts";
import type { Reason } from "../../grants/judge.ts";
import { offersFor } from "../../grants/offers.ts";

/** What is known of who gets a live grant. */
export interface Reception {
  /** Reasons why ServiceAccounts that it names are not offered it, sorted. */
  readonly refusals: readonly Reason[];
  /** Whether it names somebody who is offered it, or may be: of users and groups nothing is known before they call. */
  readonly reachesSomebody: boolean;
}

/**
 * Who of a live grant's subjects is offered it. `rivals` are all live grants with its declared name, itself included; `acceptances` has the annotation
 * `ambit.dev/accepts-grants-from` by namespace. Judged by the same rule as the catalogue's answer to each of them.
 */
export const receptionOf = (grant: ToolGrant, rivals: readonly ToolGrant[], acceptances: ReadonlyMap<string, string>): Reception => {
  const own = nameOf(grant);
  const subjects = grant.spec.subjects ?? [];
  const offerable = rivals.map(({ metadata, spec }) => ({ namespace: metadata.namespace ?? "default", name: metadata.name, spec }));
  const refusals = subjects.map((subject): Reason | null => {
    if (subject.kind !== "ServiceAccount") return null;
    const caller = serviceAccountCaller(subject.namespace ?? own.namespace, subject.name);
    const { withheld } = offersFor(caller, offerable, acceptances);
    return withheld.find((one) => one.grant.namespace === own.namespace && one.grant.name === own.name)?.reason ?? null;
  });
  const said = new Map(refusals.flatMap((reason) => (reason ? [[`${reason.code} ${reason.message}`, reason] as const] : [])));
  return {
    refusals: [...said.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, reason]) => reason),
    reachesSomebody: refusals.some((reason) => reason === null),
  };
};

const nameOf = ({ metadata }: ToolGrant) => ({ namespace: metadata.namespace ?? "default", name: metadata.name });
