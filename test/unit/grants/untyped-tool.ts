import type { UntypedTool } from "../../../src/api/untyped.ts";

export const untypedTool = (changes: Partial<UntypedTool> = {}): UntypedTool => ({
  form: "untyped",
  name: "list_issues",
  title: "List issues",
  description: "List the issues in a repository.",
  inputSchema: { type: "object", properties: { repo: { type: "string" } }, required: ["repo"] },
  outputSchema: null,
  annotations: { readOnlyHint: true },
  server: "issues",
  instructions: null,
  ...changes,
});
