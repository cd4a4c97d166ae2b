import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { ambitVersion, buildImage } from "./image/build.ts";

/**
 * Builds Ambit's image without Docker: the Node binary that runs this script, the libraries it links, and our compiled code with its production packages.
 *
 *   npm run image -- [--out dist/image.tar] [--tag ambit:VERSION]
 *
 * The archive is a docker-archive; `npm run cluster -- load FILE` puts it onto the test node. The same sources and packages give the same bytes.
 */

const { values } = parseArgs({ options: { out: { type: "string" }, tag: { type: "string" }, help: { type: "boolean", short: "h" } } });

if (values.help) {
  process.stdout.write("usage: npm run image -- [--out FILE] [--tag NAME:TAG]\n");
} else {
  const out = resolve(values.out ?? join(import.meta.dirname, "../dist/image.tar"));
  const reference = values.tag ?? `ambit:${await ambitVersion()}`;
  await buildImage(out, reference);
  process.stdout.write(`${reference} in ${out}: ${Math.round(statSync(out).size / 1e6)} MB\n`);
}
