import type { ObservedDefinition, ToolGrantStatus } from "../../api/generated/toolgrant.ts";
import { declarationFormats } from "../../declaration/formats.ts";
import { lintDeclaration } from "../../declaration/provider-rules.ts";
import { neverCallable } from "../../grants/callable.ts";
import type { Change } from "../../grants/changes.ts";
import { definitionText } from "../../grants/definition.ts";
import { componentName } from "../../grants/granted-tool.ts";
import { hiddenCharactersIn } from "../../grants/hidden-characters.ts";
import { type Judgement, judgeGrant, type Phase, type Reason } from "../../grants/judge.ts";
import { assertUsableSchema } from "../../translate/schema-usable.ts";
import type { ConditionNow } from "../conditions.ts";
import type { ClusterToolGrant } from "../kinds.ts";
import type { FarSide } from "./observe.ts";
import { receptionOf } from "./offered-to.ts";

/** Everything that a grant's status follows from. */
export interface SeenGrant {
  readonly grant: ClusterToolGrant;
  readonly farSide: FarSide;
  /** Code that ready pods of the component run, by sha256. */
  readonly running: ReadonlySet<string>;
  /** The component that its bridge calls, where that has no ready pod. */
  readonly silentServer?: string;
  /** Live grants under the same declared name. */
  readonly rivals: readonly ClusterToolGrant[];
  /** The annotation `ambit.dev/accepts-grants-from` by namespace. */
  readonly acceptances: ReadonlyMap<string, string>;
}

/** The status without the times of its conditions. */
export interface GrantVerdict {
  readonly phase: Phase;
  readonly reasons: readonly Reason[];
  readonly status: Omit<ToolGrantStatus, "conditions" | "observedGeneration">;
  readonly conditions: readonly ConditionNow[];
}

/** What a grant is worth now and what its status says of it. Pure. */
export const decideGrant = (seen: SeenGrant): GrantVerdict => {
  const { grant, farSide } = seen;
  const judgement = judgeGrant({ grant, observed: farSide.observed, assertUsableSchema });
  const withheld = judgement.phase === "Active" ? withheldReasons(seen, judgement) : [];
  const phase = withheld.length > 0 ? "Withheld" : judgement.phase;
  const reasons = withheld.length > 0 ? withheld : [...judgement.reasons, ...(phase === "Draft" ? lacking(grant, judgement) : [])];
  const observed = observedOf(seen, judgement);
  return {
    phase,
    reasons,
    status: {
      phase,
      ...(observed ? { observed } : {}),
      components: phase === "Active" ? judgement.components : [],
      images: farSide.passing ? (grant.status?.images ?? []) : imagesOf(farSide),
      changes: judgement.changes.slice(0, mostListed).map(statusChange),
      leftOut: leftOut(grant),
      hiddenCharacters: hiddenCharactersIn({ ...grant.spec.declaration })
        .slice(0, mostListed)
        .map(({ path, codePoint, name }) => ({ path: cut(path, longestPath), codePoint, name })),
    },
    conditions: [...progress(seen, phase, reasons, judgement), callable(grant), ...reception(seen, judgement)],
  };
};

/** As the CRD bounds them. */
const mostListed = 100;
const longestPath = 1024;
const longestText = 2048;
const longestRule = 1024;
const longestDefinition = 131_072;
const longestImage = 1024;
const mostImages = 16;
const reachBounds = { hosts: 64, volumes: 16, secrets: 64, imports: 256 } as const;

const cut = (text: string, longest: number): string => (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`.toWellFormed());

/** What a draft needs besides somebody who approves it. */
const lacking = ({ spec }: ClusterToolGrant, judgement: Judgement): Reason[] => [
  ...tooLong(judgement),
  ...(spec.declaration.description === ""
    ? [{ code: "NoDescription", message: "it says nothing to a model: write spec.declaration.description" }]
    : []),
];

const tooLong = ({ fn }: Judgement): Reason[] => {
  if (!fn || definitionText(fn).length <= longestDefinition) return [];
  const message = `what the tool says of itself has more than the ${longestDefinition} characters that a status may hold; shorten its types or docs`;
  return [{ code: "DefinitionTooLong", message }];
};

const withheldReasons = (seen: SeenGrant, judgement: Judgement): Reason[] => {
  const long = tooLong(judgement);
  if (long.length > 0) return long;
  const { refusals, reachesSomebody } = receptionOf(seen.grant, seen.rivals, seen.acceptances);
  return reachesSomebody ? [] : [...refusals];
};

const imagesOf = ({ images }: FarSide): NonNullable<ToolGrantStatus["images"]> =>
  [...images]
    .filter(([, image]) => image.length <= longestImage)
    .slice(0, mostImages)
    .map(([component, image]) => ({ component, image }));

/** The definition that the judgement is about, and what goes with it to make a review of. */
const observedOf = ({ farSide }: SeenGrant, { fn, definition, components }: Judgement): ObservedDefinition | null => {
  if (!fn || !definition) return null;
  const { codes } = farSide.observed;
  const code = codes.find(({ digest }) => digest === components[0]) ?? codes.find((one) => one.fn !== null);
  const image = code && farSide.images.get(code.digest);
  const text = definitionText(fn);
  return {
    digest: definition,
    ...(text.length <= longestDefinition ? { text } : {}),
    ...(code ? { component: code.digest } : {}),
    ...(code?.code ? { code: code.code } : {}),
    ...(code && image !== undefined && image.length <= longestImage ? { image } : {}),
    ...(farSide.workload === undefined ? {} : { workload: farSide.workload }),
    ...(code && isWithinBounds(code.reach) ? { reach: code.reach } : {}),
  };
};

const isWithinBounds = (reach: Record<keyof typeof reachBounds, readonly string[]>): boolean =>
  reach.hosts.length <= reachBounds.hosts &&
  reach.volumes.length <= reachBounds.volumes &&
  reach.secrets.length <= reachBounds.secrets &&
  reach.imports.length <= reachBounds.imports;

const statusChange = ({ path, before, after }: Change) => ({
  path: cut(path, longestPath),
  ...(before === null ? {} : { before: cut(before, longestText) }),
  ...(after === null ? {} : { after: cut(after, longestText) }),
});

/** Each provider that would refuse the declaration, with the first rule that it breaks there. A draft that has no name yet breaks none by that. */
const leftOut = ({ spec }: ClusterToolGrant): NonNullable<ToolGrantStatus["leftOut"]> =>
  declarationFormats.flatMap((provider) => {
    if (provider === "neutral") return [];
    const [breach] = lintDeclaration(spec.declaration, provider).filter(({ where }) => where !== "/name" || spec.declaration.name !== "");
    if (!breach) return [];
    return [{ provider, rule: cut(`${breach.rule}: ${breach.message}`, longestRule), where: cut(breach.where, longestPath) }];
  });

const said = (reasons: readonly Reason[]): string => reasons.map(({ message }) => message).join("; ");

/** Ready, Reconciling and Stalled: a draft or a drift is stalled, since a person must act; what may pass by itself is reconciling. */
const progress = (seen: SeenGrant, phase: Phase, reasons: readonly Reason[], { components }: Judgement): ConditionNow[] => {
  const state = (
    ready: ConditionNow["status"],
    reconciling: boolean,
    stalled: boolean,
    reason: string,
    message: string,
  ): ConditionNow[] => [
    { type: "Ready", status: ready, reason, message },
    { type: "Reconciling", status: reconciling ? "True" : "False", reason, message },
    { type: "Stalled", status: stalled ? "True" : "False", reason, message },
  ];
  const [first] = reasons;
  if (phase !== "Active") {
    const waits = seen.farSide.passing !== undefined;
    return state("False", waits, !waits, first?.code ?? phase, said(reasons));
  }
  const { workload } = seen.grant.spec.tool;
  if (!components.some((digest) => seen.running.has(digest))) {
    const message = `no ready pod of ${workload}/${componentName(seen.grant.spec.tool)} runs the approved code`;
    return state("False", true, false, "NoReadyHost", message);
  }
  if (seen.silentServer !== undefined)
    return state("False", true, false, "NoReadyHost", `no pod of the MCP server's component ${workload}/${seen.silentServer} is ready`);
  return state("True", false, false, "Active", "it is as it was reviewed, and ready pods run the approved code");
};

const callable = ({ spec }: ClusterToolGrant): ConditionNow => {
  const why = neverCallable(spec);
  return why === null
    ? { type: "NeverCallable", status: "False", reason: "Callable", message: "a model's arguments can satisfy its rules" }
    : { type: "NeverCallable", status: "True", reason: "NeverCallable", message: why };
};

/** Whether all ServiceAccounts that it names are offered it; only a live grant is offered to anybody. */
const reception = (seen: SeenGrant, { phase }: Judgement): ConditionNow[] => {
  if (phase !== "Active") return [];
  if ((seen.grant.spec.subjects ?? []).length === 0)
    return [
      { type: "Offered", status: "False", reason: "NoSubjects", message: "it names nobody; fill in spec.subjects and approve it again" },
    ];
  const { refusals } = receptionOf(seen.grant, seen.rivals, seen.acceptances);
  const [first] = refusals;
  return first
    ? [{ type: "Offered", status: "False", reason: first.code, message: said(refusals) }]
    : [{ type: "Offered", status: "True", reason: "Accepted", message: "every ServiceAccount that it names is offered it" }];
};
