import type { Subject } from "../api/generated/toolgrant.ts";
import type { Reason } from "./judge.ts";

/** Who asks. `namespace` is the ServiceAccount's; null for a user that has none. */
export interface CallerIdentity {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace: string | null;
}

/** What of a live grant decides whether it is offered; whatever else it has comes back with it. */
export interface Offerable {
  readonly namespace: string;
  readonly name: string;
  readonly spec: {
    readonly declaration: { readonly name: string };
    readonly subjects?: readonly (Omit<Subject, "namespace"> & { readonly namespace?: string | undefined })[] | undefined;
  };
}

export interface ResolvedOffers<G> {
  /** No two under one name, sorted by it. */
  readonly offers: readonly G[];
  /** Grants that name the caller and yet are not offered, and why. */
  readonly withheld: readonly { readonly grant: G; readonly reason: Reason }[];
}

/**
 * What a caller is offered of these live grants (docs/review.md, who sees what). `namespaces` has the text of the annotation
 * `ambit.dev/accepts-grants-from` by namespace; a caller without a namespace is subject to the text under the empty name, and gets nothing without one.
 * The result depends on nothing else: it is the same on every replica.
 */
export const offersFor = <G extends Offerable>(
  caller: CallerIdentity,
  grants: Iterable<G>,
  namespaces: ReadonlyMap<string, string>,
): ResolvedOffers<G> => {
  const accepted = acceptedNamespaces(namespaces.get(caller.namespace ?? "") ?? "");
  const rankOf = (namespace: string): number => {
    if (namespace === caller.namespace) return -1;
    const index = accepted.names.indexOf(namespace);
    if (index >= 0) return index;
    return accepted.all ? accepted.names.length : Number.POSITIVE_INFINITY;
  };

  const named = [...grants].filter((grant) => isNamed(caller, grant)).map((grant) => ({ grant, rank: rankOf(grant.namespace) }));
  const winners = new Map<string, { grant: G; rank: number }>();
  for (const one of named) {
    const { name } = one.grant.spec.declaration;
    const winner = winners.get(name);
    if (one.rank !== Number.POSITIVE_INFINITY && (!winner || byPrecedence(one, winner) < 0)) winners.set(name, one);
  }
  const withheld = named
    .flatMap((one) => {
      const winner = winners.get(one.grant.spec.declaration.name);
      if (one === winner) return [];
      const reason =
        !winner || one.rank === Number.POSITIVE_INFINITY ? notAccepted(caller, one.grant) : nameConflict(one.grant, winner.grant);
      return [{ ...one, reason }];
    })
    .sort(byPrecedence)
    .map(({ grant, reason }) => ({ grant, reason }));
  const offers = [...winners.values()]
    .map(({ grant }) => grant)
    .sort((a, b) => compareText(a.spec.declaration.name, b.spec.declaration.name));
  return { offers, withheld };
};

/** Of grants under one name the first is offered: by the caller's preference, then by namespace, then by name; never by age. */
const byPrecedence = (a: { grant: Offerable; rank: number }, b: { grant: Offerable; rank: number }): number =>
  compareNumbers(a.rank, b.rank) || compareText(a.grant.namespace, b.grant.namespace) || compareText(a.grant.name, b.grant.name);

/** Whether the grant's subjects include the caller, as RBAC judges it. */
const isNamed = (caller: CallerIdentity, grant: Offerable): boolean => isAmong(caller, grant.spec.subjects ?? [], grant.namespace);

/** Whether one of the subjects is the caller, as RBAC judges it; `namespace` is that of a ServiceAccount without one. */
export const isAmong = (
  caller: CallerIdentity,
  subjects: readonly (Omit<Subject, "namespace"> & { readonly namespace?: string | undefined })[],
  namespace = "",
): boolean =>
  subjects.some((subject) => {
    switch (subject.kind) {
      case "User":
        return caller.user === subject.name;
      case "Group":
        return caller.groups.includes(subject.name);
      case "ServiceAccount":
        // The short comparison first, since most of a grant's subjects are other callers.
        return (
          caller.user.endsWith(subject.name) && caller.user === `system:serviceaccount:${subject.namespace ?? namespace}:${subject.name}`
        );
      default:
        return false;
    }
  });

/** Names separated by commas or spaces, in order of preference; `*` stands for all others. */
const acceptedNamespaces = (annotation: string): { names: readonly string[]; all: boolean } => {
  const entries = annotation.split(/[\s,]+/).filter((entry) => entry !== "");
  return { names: entries.filter((entry) => entry !== "*"), all: entries.includes("*") };
};

const notAccepted = (caller: CallerIdentity, grant: Offerable): Reason => ({
  code: "NotAccepted",
  message:
    caller.namespace === null
      ? `${caller.user} has no namespace, and grants are not accepted from ${grant.namespace} for such callers`
      : `the namespace ${caller.namespace} does not accept grants from ${grant.namespace}: its annotation ambit.dev/accepts-grants-from would have to name it`,
});

const nameConflict = (loser: Offerable, winner: Offerable): Reason => ({
  code: "NameConflict",
  message: `the name ${loser.spec.declaration.name} is taken by ${winner.namespace}/${winner.name}; give one of them another name`,
});

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const compareNumbers = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);
