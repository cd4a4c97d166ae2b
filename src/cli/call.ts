import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Invalid } from "../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, jsonObject, parseJson } from "../api/json.ts";
import { askJson, type CatalogueAddress, textOf } from "./catalogue-client.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

interface CallOptions extends CatalogueAddress {
  readonly labels?: string;
  readonly json?: boolean;
}

/** Calls one tool; its text goes to standard output. Exits 1 unless the outcome is `ok`. */
export const call = async (terminal: Terminal, name: string, given: string, options: CallOptions): Promise<void> => {
  const parsed = parseJson(await argumentText(terminal, given));
  const answer = await askJson(
    options,
    "v1/calls",
    compactJson(
      jsonObject([
        ["name", name],
        ["arguments", parsed],
        ...(options.labels === undefined ? [] : [["labels", parseJson(options.labels)] as const]),
      ]),
    ),
  );
  const outcome = textOf(answer.outcome);
  if (options.json) terminal.out(`${compactJson(answer)}\n`);
  else if (outcome === "ok") terminal.out(`${printable(contentText(answer))}\n`);
  else terminal.err(`${tone(terminal, "bad", `${outcome}:`)} ${printable(contentText(answer))}${reasonIn(answer)}\n`);
  if (outcome !== "ok") throw new Exit(exitCodes.negative);
};

const argumentText = async (terminal: Terminal, given: string): Promise<string> => {
  if (given === "-") {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString("utf8");
  }
  if (!given.startsWith("@")) return given;
  return readFile(resolve(terminal.folder, given.slice(1)), "utf8").catch((cause: unknown) => {
    throw new Invalid("FileUnreadable", `the arguments' file ${given.slice(1)} cannot be read`, undefined, { cause });
  });
};

const contentText = (answer: JsonObject): string => {
  const content = answer.content;
  if (!Array.isArray(content)) return textOf(content);
  return content.map((block) => (isJsonObject(block) ? textOf(block.text) : "")).join("\n");
};

const reasonIn = (answer: JsonObject): string => {
  const reason = answer.reason;
  return isJsonObject(reason) && textOf(reason.message) !== contentText(answer)
    ? ` (${printable(`${textOf(reason.code)}: ${textOf(reason.message)}`)})`
    : "";
};
