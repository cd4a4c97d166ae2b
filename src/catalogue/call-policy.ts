import { Ajv2020 } from "ajv/dist/2020.js";
import { Invalid } from "../api/errors.ts";
import type { Subject } from "../api/generated/toolgrant.ts";
import { lower, type Sensitivity, sensitivities } from "../grants/labels.ts";
import { windowMs } from "../grants/limits.ts";
import { isAmong } from "../grants/offers.ts";
import type { DenialLimit } from "./allowance.ts";
import type { Caller } from "./caller.ts";

/** What an installation decides about callers, whatever single grants say (docs/catalogue.md). */
export interface CallPolicy {
  /** Who may say that a value is trusted, where it comes from, and that it is less sensitive than a model's words. */
  readonly isLabeler: (caller: Caller) => boolean;
  /** The most sensitive information that the caller may send to any tool. */
  readonly ceilingOf: (caller: Caller) => Sensitivity;
  /** Refusals of what a caller sent a tool after which it may not call the tool; null lets it try without end. */
  readonly denials: DenialLimit | null;
  /** Who is told why a call was refused. */
  readonly explainsTo: (caller: Caller) => boolean;
}

const subject = {
  type: "object",
  additionalProperties: false,
  required: ["kind", "name"],
  properties: {
    kind: { enum: ["ServiceAccount", "Group", "User"] },
    name: { type: "string", minLength: 1, maxLength: 253 },
    namespace: { type: "string", minLength: 1, maxLength: 63 },
  },
} as const;

const refusals = { type: "integer", minimum: 1, maximum: 1_000_000 } as const;

const subjects = { type: "array", maxItems: 1024, items: subject } as const;

const schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    labelers: subjects,
    ceilings: {
      type: "array",
      maxItems: 1024,
      items: {
        type: "object",
        additionalProperties: false,
        required: ["subject", "ceiling"],
        properties: { subject, ceiling: { enum: sensitivities } },
      },
    },
    denials: {
      type: ["object", "null"],
      additionalProperties: false,
      required: ["count", "window"],
      properties: { count: refusals, perSession: refusals, window: { type: "string", maxLength: 16 } },
    },
    explainsTo: subjects,
  },
} as const;

interface WrittenPolicy {
  readonly labelers?: readonly Subject[];
  readonly ceilings?: readonly { readonly subject: Subject; readonly ceiling: Sensitivity }[];
  readonly denials?: { readonly count: number; readonly perSession?: number; readonly window: string } | null;
  readonly explainsTo?: readonly Subject[];
}

/** Enough for a model that is wrong about a tool, and too few to find out a rule by trying. */
const defaultDenials: WrittenPolicy["denials"] = { count: 30, window: "10m" };

/**
 * The policy that a file of an installation gives, as JSON or YAML. A catalogue that can't read it must not start: it would let through what was to be kept back.
 * Throws `Invalid` (`CallPolicyInvalid` at a JSON pointer, `WindowInvalid`).
 */
export const readCallPolicy = (written: unknown): CallPolicy => {
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile<WrittenPolicy>(schema);
  if (!validate(written)) {
    const [fault] = validate.errors ?? [];
    const extra = fault?.params.additionalProperty === undefined ? "" : ` (${String(fault.params.additionalProperty)})`;
    throw invalid(`${fault?.message ?? "it is not as expected"}${extra}`, fault?.instancePath ?? "");
  }
  const { labelers = [], ceilings = [], denials = defaultDenials, explainsTo = [] } = written;
  for (const [index, one] of labelers.entries()) assertSubject(one, `/labelers/${index}`);
  for (const [index, one] of ceilings.entries()) assertSubject(one.subject, `/ceilings/${index}/subject`);
  for (const [index, one] of explainsTo.entries()) assertSubject(one, `/explainsTo/${index}`);
  return {
    isLabeler: (caller) => isAmong(caller, labelers),
    ceilingOf: (caller) =>
      ceilings.reduce<Sensitivity>((lowest, one) => (isAmong(caller, [one.subject]) ? lower(lowest, one.ceiling) : lowest), "Secret"),
    denials: denials && { max: denials.count, perSession: denials.perSession ?? null, windowMs: windowMs(denials.window) },
    explainsTo: (caller) => isAmong(caller, explainsTo),
  };
};

/** As the schema of a ToolGrant has it: whoever wrote a namespace for a Group meant somebody else. */
const assertSubject = ({ kind, namespace }: Subject, at: string): void => {
  if ((kind === "ServiceAccount") !== (namespace !== undefined))
    throw invalid("a ServiceAccount needs its namespace; a User and a Group have none", at);
};

const invalid = (message: string, at: string): Invalid => new Invalid("CallPolicyInvalid", message, at);

/** Of an installation that decided nothing: nobody labels, grants alone have ceilings. */
export const defaultCallPolicy: CallPolicy = readCallPolicy({});
