import { compactJson, isJsonObject, parseJson } from "../api/json.ts";
import { answerLimits, answerOf, askJson, type CatalogueAddress, textOf } from "./catalogue-client.ts";
import { printable, type Terminal, tone } from "./terminal.ts";

interface DeclarationsOptions extends CatalogueAddress {
  readonly format: string;
  readonly search?: string;
  readonly json?: boolean;
  /** As the catalogue takes them: see docs/catalogue.md. */
  readonly cache?: string;
  readonly strict?: string;
  readonly defer?: string;
  readonly namespace?: string;
}

const passedOn = ["format", "cache", "strict", "defer", "namespace"] as const;

/** Prints what a caller is offered: for a person by default, and the catalogue's own bytes in a provider's shape. */
export const declarations = async (terminal: Terminal, options: DeclarationsOptions): Promise<void> => {
  if (options.search !== undefined) {
    const found = await askJson(options, `v1/search?q=${encodeURIComponent(options.search)}&format=${options.format}`);
    terminal.out(`${compactJson(found)}\n`);
    return;
  }
  const query = new URLSearchParams(passedOn.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])));
  const { text, headers } = await answerOf(options, `v1/declarations?${query}`);
  const leftOut = headers.get("ambit-left-out");
  if (leftOut) terminal.err(`Left out, since ${options.format} would refuse them: ${printable(leftOut)}\n`);
  if (options.json || options.format !== "neutral") {
    terminal.out(`${text}\n`);
    return;
  }
  const listed = parseJson(text, answerLimits);
  const offered = Array.isArray(listed) ? listed.filter(isJsonObject) : [];
  if (offered.length === 0) terminal.err("No tool is offered to this caller. `ambit review` tells which grants are live, and for whom.\n");
  for (const declaration of offered) {
    terminal.out(`${tone(terminal, "strong", printable(textOf(declaration.name)))}  ${printable(textOf(declaration.description))}\n`);
    terminal.out(`  ${compactJson(declaration.parameters ?? null)}\n`);
  }
};
