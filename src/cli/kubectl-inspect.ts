import { Invalid } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { toolOfDefinition } from "../grants/definition-function.ts";
import { farName } from "../grants/granted-tool.ts";
import { shownGrant } from "./approval.ts";
import { type ClusterOptions, changesOf, currentStatus, phaseOf, whyOf, withClusterGrants } from "./cluster-grants.ts";
import { printable, type Terminal, tone } from "./terminal.ts";

export interface KubectlInspectOptions extends ClusterOptions {
  readonly json?: boolean;
}

/** Tells everything about one grant of a cluster: what the model reads, what the tool may touch, what each provider says to it. */
export const kubectlInspect = async (terminal: Terminal, name: string, options: KubectlInspectOptions): Promise<void> => {
  const grant = await withClusterGrants(options, ({ get }) => get(name));
  if (options.json) terminal.out(`${JSON.stringify({ metadata: grant.metadata, spec: grant.spec, status: grant.status }, null, 2)}\n`);
  else terminal.out(inspectionText(terminal, grant));
};

const nothing = { hosts: [], volumes: [], secrets: [], imports: [] };

const inspectionText = (terminal: Terminal, grant: ToolGrant): string => {
  const status = currentStatus(grant);
  const { interface: id, workload, component } = grant.spec.tool;
  const name = farName(grant.spec.tool);
  const reach = status?.observed?.reach ?? nothing;
  const code = status?.observed?.component;
  const lines = [
    `  Phase:         ${phaseOf(grant)}${whyOf(grant) === "" ? "" : `, ${printable(whyOf(grant))}`}`,
    `  The tool:      ${printable(id === undefined ? name : `${id}#${name}`)} of ${printable(`${workload}/${component}`)}`,
    ...(status?.observed?.image ? [`  Its image:     ${printable(status.observed.image)}`] : []),
    `  Its imports:   ${printable(reach.imports.join(", ")) || "none"}`,
    ...(grant.spec.review ? [`  Approved:      ${printable(reviewText(grant.spec.review))}`] : []),
    ...(status?.leftOut ?? []).map(({ provider, rule, where }) =>
      tone(terminal, "warn", printable(`  ${provider} would refuse it at ${where}: ${rule}`)),
    ),
    ...(status?.conditions ?? [])
      .filter(({ type, status: is }) => (type === "NeverCallable" && is === "True") || (type === "Offered" && is === "False"))
      .map(({ message }) => tone(terminal, "warn", printable(`  ${message}`))),
  ];
  return `${shownGrant(terminal, { grant, reach, component: code === undefined ? [] : [code], changes: changesOf(grant), fn: toldIn(status?.observed?.text) })}${lines.join("\n")}\n`;
};

/** Null where the status has no definition, or one of a version that this Ambit does not know. */
const toldIn = (text: string | undefined): ToolDefinition | null => {
  if (text === undefined) return null;
  try {
    return toolOfDefinition(text);
  } catch (thrown) {
    if (thrown instanceof Invalid) return null;
    throw thrown;
  }
};

const reviewText = ({ reviewer, time, note, component }: NonNullable<ToolGrant["spec"]["review"]>): string =>
  [reviewer ? `by ${reviewer}` : "", time ?? "", `for ${component.join(", ")}`, note ? `(${note})` : ""]
    .filter((part) => part !== "")
    .join(" ");
