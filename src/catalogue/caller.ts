import type { CallerIdentity } from "../grants/offers.ts";
import { type SubjectKey, serviceAccountUser } from "./state.ts";

/**
 * Who is asking, as an authenticator vouches for it.
 *
 *   { "user": "system:serviceaccount:agents:triage", "groups": ["system:serviceaccounts"], "namespace": "agents" }
 *
 * `namespace` is the ServiceAccount's, null for a user without one. Nothing of it ever comes from a request's other headers or its body.
 */
export type Caller = CallerIdentity;

/** Tells who holds a token: null when nobody does. A fault of what it asks rejects, and nobody is let in. */
export type Authenticate = (token: string | null) => Promise<Caller | null>;

/** A ServiceAccount with the groups that the API server gives every one. */
export const serviceAccountCaller = (namespace: string, name: string): Caller => ({
  user: serviceAccountUser(namespace, name),
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
  namespace,
});

/** The keys under which grants may name this caller. */
export const subjectsOf = (caller: Caller): readonly SubjectKey[] => [
  `User:${caller.user}`,
  ...caller.groups.map((group): SubjectKey => `Group:${group}`),
];

/** A caller as a key for what was computed for it. */
export const callerKey = (caller: Caller): string => JSON.stringify([caller.user, caller.namespace, ...caller.groups]);
