import type { ToolIdentity } from "../api/definition.ts";
import { sha256Of } from "../api/digest.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import { canonicalJson } from "../api/json.ts";
import type { WitFunction } from "../api/wit.ts";
import { declarationOf } from "../declaration/declaration.ts";

export const draftLabel = "ambit.dev/draft";
export const workloadLabel = "ambit.dev/workload";

export interface DraftOptions {
  readonly namespace: string;
  readonly workload: string;
  readonly component: string;
  readonly fn: WitFunction;
  /** The name that a model shall call; null where a person must choose one. */
  readonly name: string | null;
}

/**
 * The grant that is proposed for a tool: the far side's words, copied for review, and the narrowest rights. It names nobody and has no review, so it offers
 * nothing until a person has filled it in and approved it. The same tool always gives the same draft.
 *
 * Throws `Invalid` (`SchemaTooLarge`) where the function's schema is too large to declare.
 */
export const draftGrant = ({ namespace, workload, component, fn, name }: DraftOptions): ToolGrant => {
  const { description, parameters } = declarationOf(fn, name ?? "");
  const identity = { workload, component, interface: fn.interface, function: fn.name };
  return {
    apiVersion: "ambit.dev/v1alpha1",
    kind: "ToolGrant",
    metadata: { name: draftObjectName(identity), namespace, labels: { [draftLabel]: "true", [workloadLabel]: labelValue(workload) } },
    spec: {
      tool: { workload, component, ...(fn.interface === null ? {} : { interface: fn.interface }), function: fn.name },
      declaration: { name: name ?? "", description, parameters },
      mutates: true,
      egressCeiling: "Internal",
    },
  };
};

/** `<workload>-<function>-<eight digits>`, the digits from the whole identity, so that `Foo` and `foo` are two objects. */
export const draftObjectName = (identity: ToolIdentity): string => {
  const hash = sha256Of(canonicalJson({ ...identity })).slice("sha256:".length, "sha256:".length + 8);
  const readable = `${identity.workload}-${identity.function}`.toLowerCase().replace(/[^a-z0-9-]/g, "-");
  return `${readable.slice(0, 200).replace(/^-+|-+$/g, "")}-${hash}`;
};

/** A label's value has at most 63 characters; a longer name is found by its grant's spec instead. */
const labelValue = (name: string): string => name.slice(0, 63).replace(/[^A-Za-z0-9]+$/, "");
