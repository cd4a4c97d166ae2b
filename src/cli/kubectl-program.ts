import { Command } from "commander";
import { withDecisionOptions } from "./decision-options.ts";
import type { Terminal } from "./terminal.ts";

/** The commands of `kubectl ambit`: reviews in a cluster, with kubectl's options for which one. */
export const kubectlProgram = (terminal: Terminal): Command => {
  const ambit = new Command("kubectl ambit")
    .description("Reviews the tools of a cluster: what waits for approval, what changed, and what exactly is approved.")
    .version("0.1.0")
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err, getOutHasColors: () => terminal.colours })
    .showHelpAfterError("(kubectl ambit --help tells the commands)")
    .exitOverride();

  const command = (name: string, description: string) =>
    ambit
      .command(name)
      .description(description)
      .option("-n, --namespace <namespace>", "namespace (default: that of the kubeconfig's context)")
      .option("--kubeconfig <file>", "kubeconfig (default: as kubectl's)")
      .option("--context <name>", "context of the kubeconfig")
      .option("--json", "print JSON");

  command("review", "list grants: drafts that wait, live ones, drifted ones, and why")
    .argument("[name...]", "grants (default: all of the namespace)")
    .option("-A, --all-namespaces", "of every namespace")
    .action(async (names, options) => (await import("./kubectl-review.ts")).kubectlReview(terminal, names, options));

  command("inspect", "tell everything about one grant: what the model reads, what the tool may touch, what providers say to it")
    .argument("<name>", "the grant")
    .action(async (name, options) => (await import("./kubectl-inspect.ts")).kubectlInspect(terminal, name, options));

  command("diff", "tell what changed since each grant was approved; exits 1 where something did")
    .argument("[name...]", "grants (default: all of the namespace)")
    .option("-A, --all-namespaces", "of every namespace")
    .action(async (names, options) => (await import("./kubectl-diff.ts")).kubectlDiff(terminal, names, options));

  withDecisionOptions(
    command("approve", "show what a model would read and what the tool may touch, then approve exactly that; prints the manifest to commit")
      .argument("<name...>", "the grants")
      .option("--yes", "approve without asking"),
  )
    .option("--also-component <sha256>", "approve this code too, which is to run next")
    .option("--reviewer <name>", "who approves, as recorded (default: whom the API server takes you for)")
    .option("--note <text>", "why, as recorded")
    .action(async (names, options) => (await import("./kubectl-approve.ts")).kubectlApprove(terminal, names, options));

  return ambit;
};
