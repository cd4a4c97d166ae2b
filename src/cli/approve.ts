import { execFile } from "node:child_process";
import { readFile, rename, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { type Document, parseAllDocuments } from "yaml";
import { Invalid, Refused } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { JsonValue } from "../api/json.ts";
import { componentName, findTool } from "../grants/granted-tool.ts";
import { folderOfWorkloads, type Look } from "../local/look.ts";
import { seenComponent } from "../local/observe.ts";
import { loadManifests } from "../manifests/load.ts";
import { problemText } from "../manifests/problem.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { type ApprovalOptions, approveOrHint, askFor, codeToApprove, completed, shownGrant } from "./approval.ts";
import { type LookOptions, look } from "./look.ts";
import { unfolded } from "./manifest-text.ts";
import type { Terminal } from "./terminal.ts";

interface ApproveOptions extends ApprovalOptions, LookOptions {
  readonly grant?: string;
  readonly folder?: string;
  readonly reviewer?: string;
  readonly json?: boolean;
}

/** Approves the grants of each file, one file after the other. A component that lists its tools is asked for them once, however many files there are. */
export const approveFiles = async (terminal: Terminal, files: readonly string[], options: ApproveOptions): Promise<void> => {
  const looks = new Map<string, Look>();
  const lookAt = async (folder: string): Promise<Look> => {
    const found = looks.get(folder) ?? (await look(terminal, folder, options));
    looks.set(folder, found);
    return found;
  };
  for (const file of files) await approveFile(terminal, file, options, lookAt);
};

/** Shows each grant of a file as the model will read it, asks, and writes the reviews into the file: all of them, or none where one is refused. */
const approveFile = async (
  terminal: Terminal,
  file: string,
  options: ApproveOptions,
  lookAt: (folder: string) => Promise<Look>,
): Promise<void> => {
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
  const found = await lookAt(folder);
  const reviewer = options.reviewer ?? (await reviewerName(terminal.folder));
  const documents = parseAllDocuments(text, { compat: "yaml-1.1" }) as Document[];
  const approved: string[] = [];
  for (const written of wanted) {
    const grant = completed(written.object, options);
    const { namespace = "default" } = grant.metadata;
    const workload = found.workloads.find(
      ({ written: { object } }) =>
        object.metadata.name === grant.spec.tool.workload && (object.metadata.namespace ?? "default") === namespace,
    );
    const observation = workload?.components.get(componentName(grant.spec.tool));
    if (observation && "fault" in observation) throw new Refused(observation.fault.code, observation.fault.message);
    const seen = seenComponent(observation);
    if (!seen)
      throw new Refused(
        "NotOffered",
        `there is no component ${grant.spec.tool.workload}/${componentName(grant.spec.tool)} in ${folder}; name its folder with --folder`,
      );
    const judged = found.plan.grants.find(
      ({ written: one }) => one.object.metadata.name === grant.metadata.name && (one.object.metadata.namespace ?? "default") === namespace,
    );
    const component = codeToApprove(grant, seen.code ?? seen.digest, options);
    const changes = judged?.judgement.changes ?? [];
    const { fn } = findTool(seen, grant.spec.tool);
    if (!options.json) terminal.err(shownGrant(terminal, { grant, reach: seen.reach, component, changes, fn }));
    const reviewed = approveOrHint({
      grant,
      fn,
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
