import { readFile, rename, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { sha256Of } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";
import { decodeComponent } from "../wit/decode.ts";
import { embedDocs } from "../wit/embed-docs.ts";
import { offeredFunctions } from "../wit/offered.ts";
import { parseWitDocs } from "../wit/parse-wit-docs.ts";
import { printable, type Terminal } from "./terminal.ts";
import { readWitFiles } from "./wit-files.ts";

interface DocsEmbedOptions {
  readonly wit: string;
  readonly out?: string;
  readonly json?: boolean;
}

/** Writes a component that carries the WIT's doc comments; the file appears whole or not at all. */
export const docsEmbed = async (terminal: Terminal, component: string, options: DocsEmbedOptions): Promise<void> => {
  const source = resolve(terminal.folder, component);
  const bytes = await readFile(source).catch((cause: unknown) => {
    throw new Invalid("FileUnreadable", `the component ${component} cannot be read`, undefined, { cause });
  });
  decodeComponent(bytes);
  const embedded = embedDocs(bytes, parseWitDocs(await readWitFiles(resolve(terminal.folder, options.wit))));
  const { offered } = offeredFunctions(decodeComponent(embedded), []);
  const target = resolve(terminal.folder, options.out ?? component);
  const unfinished = `${target}.${process.pid}.part`;
  await writeFile(unfinished, embedded);
  await rename(unfinished, target);
  const documented = offered.filter(({ docs }) => docs !== "").length;
  const digest = sha256Of(embedded);
  if (options.json) terminal.out(`${JSON.stringify({ file: target, digest, offered: offered.length, documented })}\n`);
  else terminal.out(`${printable(options.out ?? component)}: ${documented} of ${offered.length} functions are documented; now ${digest}\n`);
};
