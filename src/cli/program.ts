import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { ambitNamespace } from "../api/cluster-names.ts";
import { AmbitError, Invalid, Refused, Stalled, Transient, Waiting } from "../api/errors.ts";
import { ambitVersion } from "../api/version.ts";
import { declarationFormats, type ProviderFormat, providerFormats } from "../declaration/formats.ts";
import { collect, withDecisionOptions } from "./decision-options.ts";
import { withHostOptions } from "./host-options.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

/**
 * Every command with its options. What a command does is in a file of its own, loaded only when it runs, so that `ambit --help` and small commands start fast.
 */
export const program = (terminal: Terminal): Command => {
  const ambit = new Command("ambit")
    .description("Runs AI-agent tools as WebAssembly components, each in its own sandbox, and offers agents the tools that were reviewed.")
    .version(ambitVersion)
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err, getOutHasColors: () => terminal.colours })
    .showHelpAfterError("(ambit --help tells the commands, ambit COMMAND --help their options)")
    .exitOverride();

  withHostOptions(
    ambit
      .command("up")
      .description("serve a folder of Workload and ToolGrant manifests on this machine, and follow its changes")
      .argument("[folder]", "folder with manifests", "."),
  )
    .option("--port <number>", "port of the catalogue, on loopback; 0 takes a free one", portOf, 7780)
    .option(
      "--token <token>",
      "bearer token of the local developer, who counts as every subject that the grants name (default: a new one, printed)",
    )
    .option("--agent <namespace/name=token>", "bearer token of one ServiceAccount; may be repeated", collect, [])
    .option("--no-auth", "take every caller on loopback for the local developer, without a token")
    .option("--journal <file>", "write the journal there, a JSON line a decision (default: standard error at a terminal, nothing else)")
    .option(
      "--cache <folder>",
      "where components and what was compiled from them are kept (default: AMBIT_CACHE, or ambit in the user's cache folder)",
    )
    .addOption(callPolicyOption())
    .addOption(telemetryPortOption())
    .option("--json", "say what happens as JSON lines on standard output")
    .addHelpText("after", "\nExample:\n  ambit up ./tools --port 7780 --token secret --volume workspace=./notes\n")
    .action(async (folder, options) => (await import("./up.ts")).up(terminal, folder, options));

  ambit
    .command("inspect")
    .description("tell what a component offers as tools, what it imports, and what is not offered and why")
    .argument("<component>", "a .wasm file, or an image reference with a digest")
    .option("--wit <path>", "WIT file or folder that carries the docs")
    .option("--allow-tag", "accept an image reference without a digest")
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (component, options) => (await import("./inspect.ts")).inspect(terminal, component, options));

  withHostOptions(
    ambit
      .command("draft")
      .description("write a draft ToolGrant for each tool that has none: for a person to read, complete and approve")
      .argument("[folder]", "folder with manifests", "."),
  )
    .option("--component <workload/component>", "only tools of this component")
    .option("--out <folder>", "write one file a draft there (default: print YAML)")
    .option("--subject <subject>", "who may call: ServiceAccount:namespace/name, Group:name or User:name; may be repeated", collect, [])
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (folder, options) => (await import("./draft.ts")).draft(terminal, folder, options));

  withHostOptions(
    ambit
      .command("review")
      .description("list the grants of a folder: live, draft or drifted, and why")
      .argument("[folder]", "folder with manifests", "."),
  )
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (folder, options) => (await import("./review.ts")).review(terminal, folder, options));

  withDecisionOptions(
    withHostOptions(
      ambit
        .command("approve")
        .description("show what a model would read and what the tool may touch, then record the approval in the file")
        .argument("<file...>", "files with ToolGrants")
        .option("--yes", "approve without asking")
        .option("--grant <name>", "only the grant of this name")
        .option("--folder <folder>", "folder with the Workload (default: the file's, or the nearest above that has it)"),
    ),
  )
    .option("--reviewer <name>", "who approves, as recorded (default: git's user.email, or the user's name)")
    .option("--note <text>", "why, as recorded")
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (files, options) => (await import("./approve.ts")).approveFiles(terminal, files, options));

  withHostOptions(
    ambit
      .command("diff")
      .description("tell what changed since each grant was approved; exits 1 where something did")
      .argument("[path]", "folder with manifests, or one file of ToolGrants", "."),
  )
    .option("--folder <folder>", "folder with the Workload, where the path is a file")
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (path, options) => (await import("./diff.ts")).diff(terminal, path, options));

  withHostOptions(
    ambit
      .command("check")
      .description("check manifests, grants and declarations as a cluster and the providers would; exits 1 on problems")
      .argument("[folder]", "folder with manifests", "."),
  )
    .option("--schemas-only", "check the manifests alone; read no component")
    .addOption(providerOption())
    .addOption(cacheOption())
    .option("--json", "print JSON")
    .action(async (folder, options) => (await import("./check.ts")).check(terminal, folder, options));

  ambit
    .command("call")
    .description("call a tool through a running catalogue")
    .argument("<name>", "the declared name")
    .argument("[arguments]", "arguments as JSON, @FILE, or - for standard input", "{}")
    .option("--labels <json>", "what is known of the arguments, by JSON pointer: see docs/catalogue.md")
    .addOption(urlOption())
    .addOption(tokenOption())
    .option("--json", "print the whole answer as JSON")
    .action(async (name, args, options) => (await import("./call.ts")).call(terminal, name, args, options));

  ambit
    .command("declarations")
    .description("print the declarations that a caller is offered by a running catalogue")
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(new Option("--format <format>", "shape").choices(declarationFormats).default("neutral"))
    .addOption(
      new Option("--cache <lifetime>", "the provider's cache breakpoint, instead of what grants ask for").choices(["off", "5m", "1h"]),
    )
    .addOption(new Option("--strict <boolean>", "whether what can be strict is").choices(["true", "false"]))
    .option("--defer <number>", "how many a model reads; the rest is for the provider's own tool search")
    .option("--namespace <namespace>", "only grants of this namespace")
    .option("--search <query>", "only tools that this query finds, best first")
    .option("--json", "print the catalogue's bytes as they are (default for every format but neutral)")
    .action(async (options) => (await import("./declarations.ts")).declarations(terminal, options));

  ambit
    .command("catalogue")
    .description("run a replica of the catalogue in a cluster: offers agents the tools that were reviewed, and takes their calls")
    .option("--address <address>", "address to listen on", "::")
    .option("--port <number>", "port to listen on", portOf, 8443)
    .option("--namespace <namespace>", "namespace in which the operator keeps Ambit's keys (default: ambit-system)")
    .option("--host <name>", "name that agents call the catalogue by; may be repeated", collect, [])
    .option("--audience <audience>", "what agents' tokens must have been made for", "ambit")
    .addOption(telemetryPortOption())
    .addOption(callPolicyOption())
    .option("--counter-store <url>", "Valkey or Redis in which replicas count calls and bytes together (redis:// or rediss://)")
    .option("--counter-store-password-file <file>", "file with the store's password")
    .option("--counter-store-ca <file>", "certificates (PEM) of who may sign the store's (default: the system's)")
    .option("--plain-http", "speak HTTP without TLS: only behind something that speaks TLS to agents")
    .option("--kubeconfig <file>", "which cluster (default: the one this runs in, else what kubectl would take)")
    .action(async (options) => (await import("./catalogue.ts")).catalogue(terminal, options));

  ambit
    .command("operator")
    .description(
      "run a replica of the operator in a cluster: makes and delivers sandboxes for Workloads, drafts grants, writes what it finds",
    )
    .option("--namespace <namespace>", "namespace in which it keeps Ambit's keys", ambitNamespace)
    .requiredOption("--image <reference>", "Ambit's own image, in which tools' hosts run")
    .addOption(
      new Option("--image-pull-policy <policy>", "of that image").choices(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
    )
    .option("--image-pull-secret <name>", "secret for that image, in each namespace with tools; may be repeated", collect, [])
    .addOption(cacheOption())
    .option("--plain-http-registry <host:port>", "registry that is spoken to without TLS; may be repeated", collect, [])
    .option("--egress-settings <file>", "what the installation decides about allowed hosts, as YAML or JSON: see docs/egress.md")
    .addOption(telemetryPortOption())
    .option("--require-network-policy", "deliver no component to a sandbox that reaches what its NetworkPolicy forbids")
    .option("--kubeconfig <file>", "which cluster (default: the one this runs in, else what kubectl would take)")
    .action(async (options) => (await import("./operator.ts")).operator(terminal, options));

  ambit
    .command("host")
    .description("run one component in a pod: started by the operator's Deployments")
    .requiredOption("--config <file>", "the host's configuration, as JSON")
    .action(async ({ config }) => (await import("./host.ts")).host(config));

  const docs = ambit.command("docs").description("work with the documentation that a component carries");
  docs
    .command("embed")
    .description("write the doc comments of WIT text into a component, since toolchains drop them")
    .argument("<component>", "a .wasm component")
    .requiredOption("--wit <path>", "WIT file or folder")
    .option("-o, --out <file>", "where to write (default: the component itself)")
    .option("--json", "print JSON")
    .action(async (component, options) => (await import("./docs-embed.ts")).docsEmbed(terminal, component, options));

  ambit
    .command("completion")
    .description("print a completion script for a shell")
    .addArgument(new Command().createArgument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", "\nExample:\n  source <(ambit completion bash)\n")
    .action(async (shell) => terminal.out((await import("./completion.ts")).completion(shell, ambit)));

  return ambit;
};

/** Runs one command line and gives the exit code; everything that went wrong has been said on standard error by then. */
export const run = async (argv: readonly string[], terminal: Terminal, commands: typeof program = program): Promise<number> => {
  const ambit = commands(terminal);
  try {
    if (argv.length === 0) {
      ambit.outputHelp({ error: true });
      return exitCodes.invalid;
    }
    await ambit.parseAsync(argv, { from: "user" });
    return exitCodes.done;
  } catch (error) {
    if (error instanceof Exit) return error.exitCode;
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.invalid;
    if (error instanceof AmbitError) {
      const where = error instanceof Invalid && error.at ? ` (at ${printable(error.at)})` : "";
      terminal.err(`${tone(terminal, "bad", `${error.code}:`)} ${printable(error.message)}${where}\n`);
      return exitCodeOf(error);
    }
    throw error;
  }
};

const exitCodeOf = (error: AmbitError): number => {
  if (error instanceof Refused) return exitCodes.negative;
  if (error instanceof Transient || error instanceof Waiting) return exitCodes.unavailable;
  return error instanceof Invalid || error instanceof Stalled ? exitCodes.invalid : exitCodes.negative;
};

const portOf = (text: string): number => {
  const port = Number(text);
  if (!/^[0-9]{1,5}$/.test(text) || port > 65535) throw new InvalidArgumentError("a port is a number from 0 to 65535.");
  return port;
};

const callPolicyOption = () =>
  new Option("--call-policy <file>", "what the installation decides about callers, as YAML or JSON: see docs/catalogue.md");

const providerOption = () =>
  new Option("--provider <format>", `a provider whose rules count: ${providerFormats.join(", ")}; may be repeated`)
    .argParser((text: string, before: readonly ProviderFormat[]) => [...before, providerOf(text)])
    .default([], "all");

const providerOf = (text: string): ProviderFormat => {
  const provider = providerFormats.find((format) => format === text);
  if (!provider) throw new InvalidArgumentError(`it is one of ${providerFormats.join(", ")}.`);
  return provider;
};

const cacheOption = () =>
  new Option("--cache <folder>", "where components are kept (default: AMBIT_CACHE, or ambit in the user's cache folder)");
const telemetryPortOption = () =>
  new Option("--telemetry-port <number>", "port for metrics and probes in plain HTTP, see docs/observability.md (default: none)").argParser(
    portOf,
  );
const urlOption = () => new Option("--url <url>", "the catalogue").env("AMBIT_URL").default("http://127.0.0.1:7780");
const tokenOption = () => new Option("--token <token>", "bearer token").env("AMBIT_TOKEN");
