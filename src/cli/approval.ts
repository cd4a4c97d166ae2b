import { createInterface } from "node:readline/promises";
import type { Reach } from "../api/definition.ts";
import { isSha256Digest, type Sha256Digest } from "../api/digest.ts";
import { Invalid, Refused } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import { compactJson } from "../api/json.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { approve } from "../grants/approve.ts";
import { besidesDeclaration } from "../grants/besides-declaration.ts";
import type { Change } from "../grants/changes.ts";
import { hiddenCharactersIn } from "../grants/hidden-characters.ts";
import { hintsAgainst } from "../grants/hints.ts";
import { parseSubject } from "./subjects.ts";
import { Exit, exitCodes, printable, quotedLines, type Terminal, tone } from "./terminal.ts";

/** What a reviewer decides on the command line, the same for a file and for a cluster. */
export interface ApprovalOptions {
  readonly yes?: boolean;
  readonly subject: readonly string[];
  readonly readOnly?: boolean;
  readonly acceptUntrusted?: boolean;
  readonly allowHidden: readonly string[];
  readonly anyComponent?: boolean;
  readonly keepComponent?: boolean;
  readonly note?: string;
}

/** The grant as it is to be approved: with the subjects and rules that the options give. */
export const completed = (grant: ToolGrant, options: ApprovalOptions): ToolGrant => {
  const subjects = options.subject.length > 0 ? options.subject.map(parseSubject) : grant.spec.subjects;
  const accepts = options.acceptUntrusted && !grant.spec.fields?.some(({ path }) => path === "");
  return {
    ...grant,
    spec: {
      ...grant.spec,
      ...(subjects ? { subjects } : {}),
      ...(options.readOnly ? { mutates: false } : {}),
      ...(accepts ? { fields: [...(grant.spec.fields ?? []), { path: "", acceptUntrusted: true }] } : {}),
    },
  };
};

/** The code to approve: what is seen now, any of a remote server, and with `keepComponent` the latest of the review before. */
export const codeToApprove = (grant: ToolGrant, seen: Sha256Digest | "any", options: ApprovalOptions): readonly Sha256Digest[] | "any" => {
  if (options.anyComponent || seen === "any") return "any";
  const before = options.keepComponent ? (grant.spec.review?.component ?? []).filter(isSha256Digest).slice(-1) : [];
  return [...new Set([...before, seen])];
};

/** What to type for a refusal that an option answers. */
const hints: Readonly<Record<string, string>> = {
  NoSubjects: "give --subject ServiceAccount:namespace/name, Group:name or User:name",
  NeverCallable: "give --read-only for a tool that changes nothing, or --accept-untrusted for one that may act on what a model wrote",
  HiddenCharacters: "remove them, or give --allow-hidden U+XXXX for each that belongs there",
};

/** As `approve`; what it refuses is refused with the option that would answer it. */
export const approveOrHint = (options: Parameters<typeof approve>[0]): ToolGrant => {
  try {
    return approve(options);
  } catch (error) {
    const hint = error instanceof Refused ? hints[error.code] : undefined;
    if (!(error instanceof Refused) || hint === undefined) throw error;
    throw new Refused(error.code, `${error.message}. Here: ${hint}.`, { cause: error });
  }
};

export interface GrantView {
  readonly grant: ToolGrant;
  readonly reach: Reach;
  readonly component: readonly string[] | "any";
  readonly changes: readonly Change[];
  /** The tool itself, as observed. */
  readonly fn: ToolDefinition | null;
}

/** Everything that is approved, as a reviewer reads it: the declaration byte for byte, the reach in words, what changed. */
export const shownGrant = (terminal: Terminal, { grant, reach, component, changes, fn }: GrantView): string => {
  const { metadata, spec } = grant;
  const { declaration } = spec;
  const besides = besidesDeclaration(fn);
  const lines = [
    tone(terminal, "strong", `${metadata.namespace ?? "default"}/${metadata.name}`),
    "  The model will read:",
    `    name         ${printable(declaration.name)}`,
    `    description  ${quotedLines(declaration.description, "      ")}`,
    `    parameters   ${printable(compactJson(declaration.parameters))}`,
    ...Object.entries(besides).map(
      ([what, said]) => `  Its ${what} by its own word: ${quotedLines(typeof said === "string" ? said : compactJson(said), "    ")}`,
    ),
    `  Who may call:  ${printable(subjectsText(spec.subjects ?? []))}`,
    `  It ${spec.mutates === false ? "changes nothing" : "may change things"}; data up to ${spec.egressCeiling ?? "Internal"} may be sent to it.`,
    ...hintsAgainst(fn, { mutates: spec.mutates !== false, reach }).map((claim) =>
      tone(terminal, "warn", `  Its hints: ${printable(claim)}.`),
    ),
    `  Its answers count as ${spec.outputSensitivity ?? "Internal"} at least.`,
    ...limitLines(spec),
    ...ruleLines(spec.fields ?? []),
    `  It may touch:  ${printable(reachText(reach))}`,
    `  Its code:      ${component === "any" ? "whatever serves this definition" : component.join(", ")}`,
  ];
  for (const { path, codePoint, name } of hiddenCharactersIn({ ...declaration, ...besides }))
    lines.push(tone(terminal, "bad", `  Hidden: ${codePoint} ${name} in ${path}`));
  if (changes.length > 0) lines.push("  Changed since the last review:", ...changeLines(terminal, changes, "    "));
  return `${lines.join("\n")}\n`;
};

/** Each change with what was and what is. */
export const changeLines = (terminal: Terminal, changes: readonly Change[], indent: string): string[] =>
  changes.flatMap(({ path, before, after }) => [
    `${indent}${tone(terminal, "strong", printable(path))}`,
    ...(before === null ? [] : [tone(terminal, "bad", `${indent}- ${quotedLines(before, indent)}`)]),
    ...(after === null ? [] : [tone(terminal, "good", `${indent}+ ${quotedLines(after, indent)}`)]),
  ]);

const ruleLines = (fields: NonNullable<ToolGrant["spec"]["fields"]>): string[] =>
  fields.map(({ path, ...rule }) => `  Arguments at ${JSON.stringify(path)}: ${printable(compactJson({ ...rule }))}`);

const limitLines = ({ rateLimit, maxEgressBytes }: ToolGrant["spec"]): string[] => [
  ...(rateLimit ? [`  Each caller may call it ${rateLimit.count} times in ${printable(rateLimit.window)}.`] : []),
  ...(maxEgressBytes
    ? [`  Each caller may send it ${printable(maxEgressBytes.bytes)} bytes of arguments in ${printable(maxEgressBytes.window)}.`]
    : []),
];

const reachText = (reach: Reach): string => {
  const parts = [
    reach.hosts.length > 0 ? `the hosts ${reach.hosts.join(", ")}` : "no network",
    reach.volumes.length > 0 ? `the folders ${reach.volumes.join(", ")}` : "no folder",
    ...(reach.secrets.length > 0 ? [`the secrets ${reach.secrets.join(", ")}`] : []),
  ];
  return parts.join("; ");
};

export const subjectsText = (subjects: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[]): string =>
  subjects.map(({ kind, name, namespace }) => `${kind}:${namespace ? `${namespace}/` : ""}${name}`).join(", ") || "nobody";

/** Ends the command where the answer is not yes. Throws `Invalid` (`NotConfirmed`) where nobody can be asked. */
export const askFor = async (terminal: Terminal, { metadata }: ToolGrant): Promise<void> => {
  if (!terminal.interactive) throw new Invalid("NotConfirmed", "nobody can be asked here: look at the grant, then give --yes");
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await questions.question(`Approve ${metadata.name}? (yes/no) `);
    if (answer.trim().toLowerCase() !== "yes") {
      terminal.err("Not approved; everything is as it was.\n");
      throw new Exit(exitCodes.negative);
    }
  } finally {
    questions.close();
  }
};
