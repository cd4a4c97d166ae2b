import type { Reach } from "../api/definition.ts";
import type { Sha256Digest } from "../api/digest.ts";
import { Refused } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { JsonObject } from "../api/json.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { nameProblem } from "../declaration/names.ts";
import { besidesDeclaration } from "./besides-declaration.ts";
import { neverCallable } from "./callable.ts";
import { definitionDigest } from "./definition.ts";
import { draftLabel } from "./draft.ts";
import { grantDigest } from "./grant-digest.ts";
import { componentName, farName } from "./granted-tool.ts";
import { hiddenCharactersIn } from "./hidden-characters.ts";
import { reviewedTextAnnotations } from "./reviewed-text.ts";

export interface ApproveOptions {
  /** The grant as it was shown, its subjects and rules already filled in. */
  readonly grant: ToolGrant;
  /** The tool as observed; null where the component does not offer it. */
  readonly fn: ToolDefinition | null;
  readonly reach: Reach;
  readonly component: readonly Sha256Digest[] | "any";
  readonly reviewer?: string;
  readonly note?: string;
  readonly now: Date;
  /** Code points that the reviewer spelled out as wanted: `["U+200D"]`. */
  readonly allowHidden?: readonly string[];
  /** Throws `Invalid` where arguments can't be checked against the schema. */
  readonly assertUsableSchema?: (schema: JsonObject) => void;
}

/**
 * The grant with a review of what was shown. Throws `Refused` with code `NotOffered`, `NameUnusable`, `NoDescription`, `NoSubjects`, `NeverCallable`,
 * `HiddenCharacters` or `TooManyDigests`, and whatever `assertUsableSchema` throws.
 */
export const approve = (options: ApproveOptions): ToolGrant => {
  const { grant, fn, reach, component, reviewer, note, now } = options;
  if (!fn) {
    const { tool } = grant.spec;
    throw new Refused(
      "NotOffered",
      `${tool.workload}/${componentName(tool)} does not offer ${farName(tool)} now, so there is nothing to approve`,
    );
  }
  assertApprovable(grant, options);
  const { [draftLabel]: _, ...labels } = grant.metadata.labels ?? {};
  return {
    ...grant,
    metadata: { ...grant.metadata, labels, annotations: reviewedTextAnnotations(grant, fn) },
    spec: {
      ...grant.spec,
      review: {
        definition: definitionDigest(fn),
        grant: grantDigest(grant.spec),
        reach,
        component: component === "any" ? ["any"] : [...new Set(component)].sort(),
        ...(reviewer ? { reviewer } : {}),
        time: now.toISOString().replace(/\.\d+Z$/, "Z"),
        ...(note ? { note } : {}),
      },
    },
  };
};

const assertApprovable = (grant: ToolGrant, { fn, component, allowHidden = [], assertUsableSchema }: ApproveOptions): void => {
  const { declaration, subjects = [] } = grant.spec;
  const problem = nameProblem(declaration.name);
  if (problem) throw new Refused("NameUnusable", `${problem}; set spec.declaration.name`);
  if (declaration.description.trim() === "") {
    throw new Refused("NoDescription", "a model would read no description of it; write spec.declaration.description");
  }
  if (subjects.length === 0) throw new Refused("NoSubjects", "it names nobody who may call it; fill in spec.subjects");
  assertUsableSchema?.(declaration.parameters);
  const why = neverCallable(grant.spec);
  if (why) throw new Refused("NeverCallable", why);
  const hidden = hiddenCharactersIn({ ...declaration, ...besidesDeclaration(fn) }).filter(
    ({ codePoint }) => !allowHidden.includes(codePoint),
  );
  if (hidden.length > 0) {
    const listed = hidden.slice(0, 5).map(({ codePoint, name, path }) => `${codePoint} ${name} in ${path}`);
    const more = hidden.length > listed.length ? ` and ${hidden.length - listed.length} more` : "";
    throw new Refused(
      "HiddenCharacters",
      `the declaration has characters that a reader does not see as they are: ${listed.join("; ")}${more}`,
    );
  }
  const digests = component === "any" ? 1 : new Set(component).size;
  if (digests === 0 || digests > 2) {
    throw new Refused("TooManyDigests", `a review names one component digest, or two during a rollout, not ${digests}`);
  }
};
