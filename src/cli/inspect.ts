import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { Invalid } from "../api/errors.ts";
import type { JsonObject } from "../api/json.ts";
import { untypedExport } from "../api/untyped.ts";
import type { ComponentInterface, WitFunction } from "../api/wit.ts";
import { declarationOf } from "../declaration/declaration.ts";
import { type DraftName, draftNames } from "../declaration/names.ts";
import { outputSchema } from "../declaration/schema.ts";
import { decodeComponent } from "../wit/decode.ts";
import { offeredFunctions } from "../wit/offered.ts";
import { withDocs } from "../wit/with-docs.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { printable, type Terminal, tone } from "./terminal.ts";
import { readWitFiles } from "./wit-files.ts";

interface InspectOptions {
  readonly wit?: string;
  readonly allowTag?: boolean;
  readonly cache?: string;
  readonly json?: boolean;
}

/** Tells what a component offers: needs no cluster, no grant and no host, and runs nothing of it. */
export const inspect = async (terminal: Terminal, component: string, options: InspectOptions): Promise<void> => {
  const image = await imageOf(terminal, component);
  const fetched = await componentSource(terminal, cacheFolderOf(terminal, options.cache))(
    image,
    terminal.folder,
    options.allowTag === true,
  );
  const bare = decodeComponent(await fetched.read());
  const described = options.wit ? withDocs(bare, await readWitFiles(resolve(terminal.folder, options.wit))) : bare;
  const report = inspection(described, fetched.digest);
  terminal.out(options.json ? `${JSON.stringify(report, null, 2)}\n` : inspectionText(terminal, report, basename(component)));
};

const imageOf = async (terminal: Terminal, component: string): Promise<string> => {
  if (component.startsWith("file:")) return component;
  const found = await stat(resolve(terminal.folder, component)).catch(() => null);
  if (found?.isFile()) return `file:${component}`;
  if (!component.includes("/") || component.endsWith(".wasm") || component.startsWith("/") || component.startsWith("."))
    throw new Invalid("FileUnreadable", `there is no file ${component}, and it is no image reference`);
  return component;
};

export interface Inspection {
  readonly digest: string;
  readonly docs: readonly string[];
  /** Whether it lists tools itself besides (docs/untyped-tools.md). */
  readonly listsTools: boolean;
  readonly functions: readonly InspectedFunction[];
  readonly imports: readonly {
    readonly id: string;
    readonly kind: string;
    readonly functions: readonly string[];
    readonly resources: readonly string[];
  }[];
  readonly notOffered: readonly { readonly interface: string | null; readonly function: string; readonly reason: string }[];
}

interface InspectedFunction {
  /** The name that a draft would get; null, with `nameProblem`, where a person must choose one. */
  readonly name: string | null;
  readonly nameProblem?: string;
  readonly interface: string | null;
  readonly function: string;
  readonly async: boolean;
  readonly description: string;
  readonly docsFound: boolean;
  readonly parameters: JsonObject;
  readonly output: JsonObject | null;
}

export const inspection = (described: ComponentInterface, digest: string): Inspection => {
  const { offered, notOffered } = offeredFunctions(described, []);
  const names = draftNames(offered);
  const functions: InspectedFunction[] = [];
  const tooLarge: { interface: string | null; function: string; reason: string }[] = [];
  for (const fn of offered) {
    try {
      functions.push(inspectedFunction(fn, names.get(fn)));
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      tooLarge.push({ interface: fn.interface, function: fn.name, reason: error.message });
    }
  }
  const listsTools = untypedExport(described) !== null;
  return {
    digest,
    docs: described.docs.sources,
    listsTools,
    functions,
    imports: described.imports,
    notOffered: [...notOffered, ...tooLarge],
  };
};

const inspectedFunction = (fn: WitFunction, draft: DraftName | undefined): InspectedFunction => {
  const { description, parameters } = declarationOf(fn, draft?.name ?? "");
  return {
    name: draft?.name ?? null,
    ...(draft && draft.name === null ? { nameProblem: draft.message } : {}),
    interface: fn.interface,
    function: fn.name,
    async: fn.async,
    description,
    docsFound: fn.docs !== "",
    parameters,
    output: outputSchema(fn),
  };
};

const inspectionText = (terminal: Terminal, report: Inspection, file: string): string => {
  const strong = (text: string) => tone(terminal, "strong", text);
  const lines = [`${strong(file)} ${report.digest}`, "", strong(`Offers ${report.functions.length} functions as tools`)];
  if (report.listsTools) lines.push("  and tools that it lists itself when it runs: `ambit draft` asks for them");
  for (const fn of report.functions) {
    lines.push(
      `  ${strong(printable(fn.name ?? "(no usable name)"))}  ${printable(fn.description) || tone(terminal, "warn", "no documentation: a person must write a description before approval")}`,
    );
    lines.push(tone(terminal, "dim", `    ${printable(fn.interface === null ? fn.function : `${fn.interface}#${fn.function}`)}`));
    if (fn.nameProblem) lines.push(tone(terminal, "warn", `    ${printable(fn.nameProblem)}`));
    for (const line of parameterLines(fn.parameters)) lines.push(`    ${printable(line)}`);
  }
  lines.push(
    "",
    strong(report.imports.length === 0 ? "Imports nothing: it can reach nothing" : "Imports, and therefore all that it could use"),
  );
  for (const { id } of report.imports) lines.push(`  ${printable(id)}`);
  if (report.notOffered.length > 0) lines.push("", strong("Not offered"));
  for (const { interface: id, function: name, reason } of report.notOffered)
    lines.push(`  ${printable(id === null ? name : `${id}#${name}`)}: ${printable(reason)}`);
  return `${lines.join("\n")}\n`;
};

const parameterLines = (parameters: JsonObject): string[] => {
  const { properties, required } = parameters as {
    properties?: Record<string, { type?: string; description?: string }>;
    required?: readonly string[];
  };
  return Object.entries(properties ?? {}).map(([name, schema]) => {
    const optional = required?.includes(name) ? "" : ", optional";
    return `- ${name} (${schema.type ?? "one of several"}${optional})${schema.description ? `: ${schema.description}` : ""}`;
  });
};
