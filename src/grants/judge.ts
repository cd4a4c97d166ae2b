import type { DefinitionDigest, Reach } from "../api/definition.ts";
import type { Sha256Digest } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";
import type { Review, ToolGrant } from "../api/generated/toolgrant.ts";
import { type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { nameProblem } from "../declaration/names.ts";
import { type Change, describeChanges } from "./changes.ts";
import { definitionDigest, definitionText, definitionTree, digestOfDefinitionText } from "./definition.ts";
import { grantDigest, grantText } from "./grant-digest.ts";
import { farName } from "./granted-tool.ts";
import { reachWithin } from "./reach.ts";
import { reviewedDefinition, reviewedGrant } from "./reviewed-text.ts";

/**
 * What is true now of the far side of a grant. `codes` has one entry for each component digest that serves or is about to, and for a bridge one for each code that may answer
 * behind it; none while nothing is known, and then `absent` says why.
 */
export interface Observed {
  readonly codes: readonly ObservedCode[];
  readonly absent?: Reason;
}

export interface ObservedCode {
  readonly digest: Sha256Digest;
  /** What a review names for it, where that is not `digest`: the component behind a bridge, or `any` where its server is remote. */
  readonly code?: Sha256Digest | "any";
  readonly reach: Reach;
  /** Null where this code does not offer the tool; `notOffered` says why. */
  readonly fn: ToolDefinition | null;
  readonly notOffered?: string;
}

export type Phase = "Draft" | "Active" | "Drifted" | "Withheld" | "Invalid";

/** `code` is stable and listed in docs/review.md; `message` is for a person and says what to do. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

/**
 * What a grant is worth now. It is live exactly when `phase` is `Active`; then `definition`, `fn` and `components` are what may be called: the code
 * digests whose code, definition and reach are all as reviewed.
 */
export interface Judgement {
  readonly phase: Phase;
  readonly reasons: readonly Reason[];
  readonly changes: readonly Change[];
  readonly grant: Sha256Digest;
  readonly components: readonly Sha256Digest[];
  readonly definition: DefinitionDigest | null;
  readonly fn: ToolDefinition | null;
}

export interface JudgeOptions {
  readonly grant: ToolGrant;
  readonly observed: Observed;
  /** Throws `Invalid` where the reviewed schema is none that arguments can be checked against. */
  readonly assertUsableSchema?: (schema: JsonObject) => void;
}

/** Judges a grant against what is observed (docs/review.md, what makes a grant live). Never throws; what can't be judged is not live. */
export const judgeGrant = ({ grant, observed, assertUsableSchema }: JudgeOptions): Judgement => {
  const { spec } = grant;
  const digest = grantDigest(spec);
  const first = observed.codes.find(({ fn }) => fn !== null) ?? null;
  const base = {
    grant: digest,
    components: [],
    changes: [],
    fn: first?.fn ?? null,
    definition: first?.fn ? definitionDigest(first.fn) : null,
  };

  const invalid = invalidReasons(grant, assertUsableSchema);
  if (invalid.length > 0) return { ...base, phase: "Invalid", reasons: invalid };
  if (!spec.review) return { ...base, phase: "Draft", reasons: [{ code: "NoReview", message: "nobody has approved it yet" }] };
  const { review } = spec;

  const edited = digest === review.grant ? [] : [grantEdited];
  const editedChanges = edited.length > 0 ? changesOfGrant(grant) : [];
  if (observed.codes.length === 0) {
    const absent = observed.absent ?? { code: "NotObserved", message: `nothing is known of the workload ${spec.tool.workload} yet` };
    return { ...base, phase: edited.length > 0 ? "Drifted" : "Withheld", reasons: [...edited, absent], changes: editedChanges };
  }

  const verdicts = observed.codes.map((code) => ({ code, drifts: driftsOf(grant, review, code) }));
  const bad = new Set(verdicts.filter(({ drifts }) => drifts.reasons.length > 0).map(({ code }) => code.digest));
  const good = [...new Map(verdicts.filter(({ code }) => !bad.has(code.digest)).map(({ code }) => [code.digest, code])).values()];
  const [serving] = good;
  if (edited.length === 0 && serving?.fn) {
    return {
      phase: "Active",
      reasons: [],
      changes: [],
      grant: digest,
      components: good.map((code) => code.digest),
      definition: definitionDigest(serving.fn),
      fn: serving.fn,
    };
  }
  const worst = good.length > 0 ? [] : verdicts;
  return {
    ...base,
    phase: "Drifted",
    reasons: distinct([...edited, ...worst.flatMap(({ drifts }) => drifts.reasons)]),
    changes: [...editedChanges, ...distinct(worst.flatMap(({ drifts }) => drifts.changes))],
  };
};

const grantEdited: Reason = {
  code: "GrantEdited",
  message: "the grant was edited after it was approved; approve it again, or undo the edit",
};

const invalidReasons = ({ spec }: ToolGrant, assertUsableSchema: JudgeOptions["assertUsableSchema"]): Reason[] => {
  const reasons: Reason[] = [];
  const { name, parameters } = spec.declaration;
  const problem = name === "" && !spec.review ? null : nameProblem(name);
  if (problem) reasons.push({ code: "NameUnusable", message: problem });
  try {
    assertUsableSchema?.(parameters);
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    reasons.push({ code: error.code, message: `declaration.parameters${error.at ?? ""}: ${error.message}` });
  }
  return reasons;
};

const driftsOf = (grant: ToolGrant, review: Review, code: ObservedCode): { reasons: Reason[]; changes: Change[] } => {
  const reasons: Reason[] = [];
  const changes: Change[] = [];
  if (!code.fn) {
    const why = code.notOffered ? `: ${code.notOffered}` : "";
    reasons.push({ code: "FunctionNotOffered", message: `the component does not offer ${farName(grant.spec.tool)}${why}` });
  } else if (definitionDigest(code.fn) !== review.definition) {
    reasons.push(definitionReason(review));
    changes.push(...changesOfDefinition(grant, code.fn));
  }
  for (const { kind, entry } of reachWithin(code.reach, review.reach)) {
    reasons.push({ code: "ReachWider", message: `it may touch the ${kind} ${entry} now, which was not reviewed` });
    changes.push({ path: `/reach/${kind}s`, before: null, after: entry });
  }
  const { code: named = code.digest } = code;
  if (named !== "any" && !review.component.includes("any") && !review.component.includes(named)) {
    reasons.push({ code: "CodeChanged", message: `the component is ${named} now, which was not reviewed` });
    changes.push({ path: "/component", before: review.component.join(", "), after: named });
  }
  return { reasons, changes };
};

const definitionReason = (review: Review): Reason =>
  review.definition.startsWith("v1:")
    ? { code: "DefinitionChanged", message: "what the tool says of itself is not what was reviewed" }
    : {
        code: "DefinitionVersionUnknown",
        message: `the review has a definition digest of a version that this Ambit does not know (${review.definition.slice(0, 12)}…)`,
      };

/** Against the text kept at the review, if it still is the text that was reviewed. */
const changesOfDefinition = (grant: ToolGrant, fn: ToolDefinition): Change[] => {
  const before = reviewedDefinition(grant);
  const { review } = grant.spec;
  if (before === null || digestOfDefinitionText(before) !== review?.definition) {
    return [{ path: "/definition", before: review?.definition ?? null, after: definitionDigest(fn) }];
  }
  return describeChanges(definitionTree(before), definitionTree(definitionText(fn)), "/definition");
};

const changesOfGrant = (grant: ToolGrant): Change[] => {
  const before = reviewedGrant(grant);
  const { review } = grant.spec;
  if (before === null) return [{ path: "/grant", before: review?.grant ?? null, after: grantDigest(grant.spec) }];
  return describeChanges(parsed(before), parsed(grantText(grant.spec)), "/grant");
};

const parsed = (text: string): JsonValue => parseJson(text, { maxLength: text.length, maxDepth: 128 });

const distinct = <T>(values: readonly T[]): T[] => [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
