import type { Reach } from "../../../src/api/definition.ts";
import { type Sha256Digest, sha256Of } from "../../../src/api/digest.ts";
import type { ToolGrant, ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import type { WitFunction, WitType } from "../../../src/api/wit.ts";

/** A function like those of a real component: `list-issues(args: { repo, state }) -> result<list<issue>, string>`. */
export const listIssues = (changes: Partial<WitFunction> = {}, repoDocs = "The repository, as owner/name."): WitFunction => ({
  interface: "example:github/issues@0.1.0",
  name: "list-issues",
  form: "function",
  async: true,
  params: [
    {
      name: "args",
      type: {
        kind: "record",
        name: "list-issues-args",
        docs: "",
        fields: [
          { name: "repo", type: { kind: "string" }, docs: repoDocs },
          { name: "state", type: issueState, docs: "Which issues to list." },
        ],
      },
    },
  ],
  result: { kind: "result", ok: { kind: "list", element: issue }, err: { kind: "string" } },
  docs: "List the issues in a repository.",
  ...changes,
});

const issueState: WitType = {
  kind: "enum",
  name: "issue-state",
  docs: "",
  cases: [
    { name: "open", docs: "" },
    { name: "closed", docs: "" },
  ],
};

const issue: WitType = {
  kind: "record",
  name: "issue",
  docs: "",
  fields: [
    { name: "number", type: { kind: "u32" }, docs: "" },
    { name: "state", type: issueState, docs: "" },
  ],
};

export const code: Sha256Digest = sha256Of("the component");
export const otherCode: Sha256Digest = sha256Of("another component");

export const reach: Reach = { hosts: ["api.github.com"], volumes: [], secrets: [], imports: ["wasi:http/outgoing-handler@0.2.6"] };

export const grantOf = (changes: Partial<ToolGrantSpec> = {}): ToolGrant => ({
  apiVersion: "ambit.dev/v1alpha1",
  kind: "ToolGrant",
  metadata: { name: "github-list-issues", namespace: "agents" },
  spec: {
    tool: { workload: "github", component: "github", interface: "example:github/issues@0.1.0", function: "list-issues" },
    declaration: {
      name: "list_issues",
      description: "List the issues in a repository.",
      parameters: { type: "object", properties: { repo: { type: "string" } }, required: ["repo"], additionalProperties: false },
    },
    subjects: [{ kind: "ServiceAccount", name: "triage", namespace: "agents" }],
    mutates: false,
    egressCeiling: "Internal",
    ...changes,
  },
});
