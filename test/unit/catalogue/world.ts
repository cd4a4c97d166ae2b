import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { sha256Of } from "../../../src/api/digest.ts";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import type { HostReply } from "../../../src/api/host.ts";
import { compactJson, isJsonObject, type JsonObject, jsonObject, parseJson } from "../../../src/api/json.ts";
import type { TicketClaims } from "../../../src/api/ticket.ts";
import type { WitFunction } from "../../../src/api/wit.ts";
import type { Caller } from "../../../src/catalogue/caller.ts";
import { serviceAccountCaller } from "../../../src/catalogue/caller.ts";
import type { Dispatch, Dispatched } from "../../../src/catalogue/dispatch.ts";
import type { Endpoint, LiveGrant } from "../../../src/catalogue/state.ts";

/** What the tests of the catalogue are set in: one ServiceAccount, one tool, one component. */
export const triage: Caller = serviceAccountCaller("agents", "triage");

export const code = sha256Of("the component that was reviewed");
export const otherCode = sha256Of("a component that nobody reviewed");

export const listIssues: WitFunction = {
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
          { name: "repo", type: { kind: "string" }, docs: "The repository, as owner/name." },
          { name: "number", type: { kind: "option", some: { kind: "u64" } }, docs: "" },
        ],
      },
    },
  ],
  result: { kind: "string" },
  docs: "List the issues in a repository.",
};

export const listIssuesParameters = parseJson(
  '{"type":"object","properties":{"repo":{"type":"string"},"number":{"type":"integer","minimum":0}},"required":["repo"],"additionalProperties":false}',
) as JsonObject;

type SpecChange = Partial<Omit<ToolGrantSpec, "declaration">> & { readonly declaration?: Partial<ToolGrantSpec["declaration"]> };

export const grantSpec = (change: SpecChange = {}): ToolGrantSpec => ({
  tool: { workload: "github", component: "github", interface: "example:github/issues@0.1.0", function: "list-issues" },
  subjects: [{ kind: "ServiceAccount", name: "triage", namespace: "agents" }],
  mutates: false,
  egressCeiling: "Internal",
  fields: [],
  ...change,
  declaration: {
    name: "list_issues",
    description: "List the issues in a repository.",
    parameters: listIssuesParameters,
    ...change.declaration,
  },
});

export const liveGrant = (name = "github-list-issues", change: SpecChange = {}, namespace = "agents"): LiveGrant => ({
  namespace,
  name,
  spec: grantSpec(change),
  grant: sha256Of(`grant ${name}`),
  definition: `v1:${sha256Of("definition")}`,
  components: [code],
  fn: listIssues,
});

export const endpoint = (change: Partial<Endpoint> = {}): Endpoint => ({
  url: "http://127.0.0.1:1",
  podUid: "pod-1",
  bootId: "boot-1",
  component: code,
  deadlineMs: 30_000,
  ...change,
});

export const githubComponent = { namespace: "agents", workload: "github", component: "github" } as const;

export const stats = { queueMs: 1, runMs: 2 } as const;

export const okReply = (text = "[]"): HostReply => ({ outcome: "ok", text, structured: jsonObject([["result", text]]), stats });

export const signingKeys = (): { readonly kid: string; readonly key: KeyObject; readonly publicKey: KeyObject } => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { kid: "key-1", key: privateKey, publicKey };
};

export const claimsIn = (ticket: string): TicketClaims => JSON.parse(Buffer.from(ticket.split(".")[0] ?? "", "base64url").toString("utf8"));

/** A host that answers in turn with these and keeps what it was sent. */
export const scriptedHost = (...answers: readonly Dispatched[]) => {
  const sent: { readonly endpoint: Endpoint; readonly claims: TicketClaims; readonly ticket: string; readonly body: string }[] = [];
  const dispatch: Dispatch = async (to, ticket, body) => {
    const answer = answers[Math.min(sent.length, answers.length - 1)];
    sent.push({ endpoint: to, claims: claimsIn(ticket), ticket, body: Buffer.from(body).toString("utf8") });
    if (!answer) throw new Error("the test has no answer for this call");
    return answer;
  };
  return { dispatch, sent };
};

export const objectIn = (text: string): JsonObject => {
  const value = parseJson(text);
  if (!isJsonObject(value)) throw new Error(`expected a JSON object, got ${compactJson(value)}`);
  return value;
};
