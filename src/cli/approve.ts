import { execFile } from "node:child_process";
import { readFile, rename, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { promisify } from "node:util";
import { type Document, type Node, parseAllDocuments, visit } from "yaml";
import { isSha256Digest } from "../api/digest.ts";
import { Invalid, Refused } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import { compactJson, type JsonValue } from "../api/json.ts";
import { approve } from "../grants/approve.ts";
import { hiddenCharactersIn } from "../grants/hidden-characters.ts";
import type { JudgedGrant } from "../local/desired.ts";
import { folderOfWorkloads, lookAt } from "../local/look.ts";
import { type ComponentSeen, offeredFunction, seenComponent } from "../local/observe.ts";
import { loadManifests } from "../manifests/load.ts";
import { problemText } from "../manifests/problem.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { subjectsText } from "./review.ts";
import { parseSubject } from "./subjects.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

interface ApproveOptions {
  readonly yes?: boolean;
  readonly grant?: string;
  readonly folder?: string;
  readonly subject: readonly string[];
  readonly readOnly?: boolean;
  readonly acceptUntrusted?: boolean;
  readonly allowHidden: readonly string[];
  readonly anyComponent?: boolean;
  readonly keepComponent?: boolean;
  readonly reviewer?: string;
  readonly note?: string;
  readonly cache?: string;
  readonly json?: boolean;
}

/** Approves the grants of each file, one file after the other. */
export const approveFiles = async (terminal: Terminal, files: readonly string[], options: ApproveOptions): Promise<void> => {
  for (const file of files) await approveFile(terminal, file, options);
};

/** Shows each grant of a file as the model will read it, asks, and writes the reviews into the file: all of them, or none where one is refused. */
const approveFile = async (terminal: Terminal, file: string, options: ApproveOptions): Promise<void> => {
  const path = resolve(terminal.folder, file);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Invalid("FileUnreadable", `the file ${file} cannot be read`, undefined, { cause });
  });
  const { objects, problems } = await loadManifests(path, { assertUsableSchema });
  const errors = problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Invalid("ManifestInvalid", errors.map(problemText).join("\n"));
  const own = objects.filter((object) => object.kind === "ToolGrant");
  const wanted = own.filter(({ object }) => options.grant === undefined || object.metadata.name === options.grant);
  if (wanted.length === 0)
    throw new Invalid("GrantMissing", `${file} has no ToolGrant${options.grant === undefined ? "" : ` named ${options.grant}`}`);

  const folder = options.folder ? resolve(terminal.folder, options.folder) : await folderOfWorkloads(path, wanted);
  const look = await lookAt(folder, componentSource(terminal, cacheFolderOf(terminal, options.cache)));
  const reviewer = options.reviewer ?? (await reviewerName(terminal.folder));
  const documents = parseAllDocuments(text, { compat: "yaml-1.1" }) as Document[];
  const approved: string[] = [];
  for (const written of wanted) {
    const grant = completed(written.object, options);
    const { namespace = "default" } = grant.metadata;
    const workload = look.workloads.find(
      ({ written: { object } }) =>
        object.metadata.name === grant.spec.tool.workload && (object.metadata.namespace ?? "default") === namespace,
    );
    const observation = workload?.components.get(grant.spec.tool.component);
    if (observation && "fault" in observation) throw new Refused(observation.fault.code, observation.fault.message);
    const seen = seenComponent(observation);
    if (!seen)
      throw new Refused(
        "NotOffered",
        `there is no component ${grant.spec.tool.workload}/${grant.spec.tool.component} in ${folder}; name its folder with --folder`,
      );
    const judged = look.plan.grants.find(
      ({ written: one }) => one.object.metadata.name === grant.metadata.name && (one.object.metadata.namespace ?? "default") === namespace,
    );
    const component = digestsOf(grant, seen, options);
    if (!options.json) terminal.err(shownGrant(terminal, grant, seen, component, judged));
    const reviewed = approveOrHint({
      grant,
      fn: offeredFunction(seen, grant.spec.tool),
      reach: seen.reach,
      component,
      reviewer,
      now: new Date(terminal.now()),
      allowHidden: options.allowHidden.map((codePoint) => codePoint.toUpperCase()),
      assertUsableSchema,
      ...(options.note === undefined ? {} : { note: options.note }),
    });
    if (!options.yes) await askFor(terminal, reviewed);
    writeInto(documents[written.document], reviewed, written.object);
    approved.push(grant.metadata.name);
  }
  const target = `${path}.${process.pid}.part`;
  await writeFile(target, documents.map((document) => document.toString({ lineWidth: 120, directives: false })).join("---\n"));
  await rename(target, path);
  terminal.out(
    options.json
      ? `${JSON.stringify({ file: path, approved })}\n`
      : `Approved ${approved.join(", ")} in ${file}. Commit the file: the review in it is the approval.\n`,
  );
};

/** What to type for a refusal that an option answers. */
const hints: Readonly<Record<string, string>> = {
  NoSubjects: "give --subject ServiceAccount:namespace/name, Group:name or User:name",
  NeverCallable: "give --read-only for a tool that changes nothing, or --accept-untrusted for one that may act on what a model wrote",
  HiddenCharacters: "remove them, or give --allow-hidden U+XXXX for each that belongs there",
};

const approveOrHint = (options: Parameters<typeof approve>[0]): ToolGrant => {
  try {
    return approve(options);
  } catch (error) {
    const hint = error instanceof Refused ? hints[error.code] : undefined;
    if (!(error instanceof Refused) || hint === undefined) throw error;
    throw new Refused(error.code, `${error.message}. Here: ${hint}.`, { cause: error });
  }
};

/** What the reviewer decided on the command line. */
const completed = (grant: ToolGrant, options: ApproveOptions): ToolGrant => {
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

const digestsOf = (grant: ToolGrant, seen: ComponentSeen, options: ApproveOptions) => {
  if (options.anyComponent) return "any" as const;
  const before = options.keepComponent ? (grant.spec.review?.component ?? []).filter(isSha256Digest).slice(-1) : [];
  return [...new Set([...before, seen.digest])];
};

const shownGrant = (
  terminal: Terminal,
  { metadata, spec }: ToolGrant,
  seen: ComponentSeen,
  component: "any" | readonly string[],
  judged: JudgedGrant | undefined,
): string => {
  const strong = (text: string) => tone(terminal, "strong", text);
  const { declaration } = spec;
  const lines = [
    strong(`${metadata.namespace ?? "default"}/${metadata.name}`),
    "  The model will read:",
    `    name         ${printable(declaration.name)}`,
    `    description  ${printable(declaration.description)}`,
    `    parameters   ${printable(compactJson(declaration.parameters))}`,
    `  Who may call:  ${printable(subjectsText(spec.subjects ?? []))}`,
    `  It ${spec.mutates === false ? "changes nothing" : "may change things"}; data up to ${spec.egressCeiling ?? "Internal"} may be sent to it.`,
    `  It may touch:  ${printable(reachText(seen))}`,
    `  Its code:      ${component === "any" ? "whatever serves this definition" : component.join(", ")}`,
  ];
  for (const { path, codePoint, name } of hiddenCharactersIn({ ...declaration }))
    lines.push(tone(terminal, "bad", `  Hidden: ${codePoint} ${name} in ${path}`));
  const changes = judged?.judgement.changes ?? [];
  if (changes.length > 0) lines.push("  Changed since the last review:");
  for (const { path, before, after } of changes) {
    lines.push(`    ${printable(path)}`);
    if (before !== null) lines.push(tone(terminal, "bad", `    - ${printable(before)}`));
    if (after !== null) lines.push(tone(terminal, "good", `    + ${printable(after)}`));
  }
  return `${lines.join("\n")}\n`;
};

const reachText = ({ reach }: ComponentSeen): string => {
  const parts = [
    reach.hosts.length > 0 ? `the hosts ${reach.hosts.join(", ")}` : "no network",
    reach.volumes.length > 0 ? `the folders ${reach.volumes.join(", ")}` : "no folder",
    ...(reach.secrets.length > 0 ? [`the secrets ${reach.secrets.join(", ")}`] : []),
  ];
  return parts.join("; ");
};

const askFor = async (terminal: Terminal, { metadata }: ToolGrant): Promise<void> => {
  if (!terminal.interactive) throw new Invalid("NotConfirmed", "nobody can be asked here: look at the grant, then give --yes");
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await questions.question(`Approve ${metadata.name}? (yes/no) `);
    if (answer.trim().toLowerCase() !== "yes") {
      terminal.err("Not approved; the file is as it was.\n");
      throw new Exit(exitCodes.negative);
    }
  } finally {
    questions.close();
  }
};

/** Long texts in one line each, as they are: folded and escaped nobody could compare them in a diff. */
const unfolded = (node: unknown): unknown => {
  visit(node as Node, {
    Scalar: (key, scalar) => {
      if (key !== "key" && typeof scalar.value === "string" && scalar.value.length > longestPlain) scalar.type = "BLOCK_LITERAL";
    },
  });
  return node;
};

const longestPlain = 100;

/** Only what the approval changed is written, so that the file keeps its comments, its order and its quoting. */
const writeInto = (document: Document | undefined, { metadata, spec }: ToolGrant, before: ToolGrant): void => {
  if (!document) throw new Error("a grant that was read has a document");
  const set = (path: string[], value: unknown, old: unknown) => {
    if (JSON.stringify(value) === JSON.stringify(old)) return;
    if (value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0)) document.deleteIn(path);
    else document.setIn(path, unfolded(document.createNode(value)));
  };
  set(["metadata", "labels"], metadata.labels, before.metadata.labels);
  set(["metadata", "annotations"], metadata.annotations, before.metadata.annotations);
  set(["spec", "subjects"], spec.subjects, before.spec.subjects);
  set(["spec", "mutates"], spec.mutates, before.spec.mutates);
  set(["spec", "fields"], spec.fields as JsonValue | undefined, before.spec.fields);
  set(["spec", "review"], spec.review, undefined);
};

const reviewerName = async (folder: string): Promise<string> => {
  try {
    const { stdout } = await promisify(execFile)("git", ["config", "user.email"], { cwd: folder, timeout: 2000 });
    if (stdout.trim() !== "") return stdout.trim();
  } catch (error) {
    // No git, or no address in it: the name is informative, so the account's will do.
    if (!(error instanceof Error)) throw error;
  }
  return userInfo().username;
};
