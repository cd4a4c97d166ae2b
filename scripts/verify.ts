import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/**
 * Everything that must hold before a change lands, cheap checks first: `npm run verify`. All of them run even when one fails, so that one run tells
 * everything; exits 1 if any failed.
 */

interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const checks: readonly Check[] = [
  { name: "generated files are in sync", command: ["node", "scripts/generate-types.ts", "--check"] },
  { name: "committed components are of the source that is here", command: ["node", "scripts/build-components.ts", "--check-sources"] },
  { name: "format and lint", command: ["biome", "ci", "--error-on-warnings", "--max-diagnostics=50"] },
  { name: "import directions", command: ["node", "scripts/import-directions.ts"] },
  { name: "types", command: ["tsc", "-p", "."] },
  { name: "tests", command: ["node", "scripts/test.ts"] },
];

const root = resolve(import.meta.dirname, "..");
const path = `${resolve(root, "node_modules/.bin")}:${process.env.PATH ?? ""}`;

const holds = async ({ name, command: [file, ...args] }: Check): Promise<boolean> => {
  process.stdout.write(`\n== ${name}: ${[file, ...args].join(" ")}\n`);
  const child = spawn(file, args, { cwd: root, stdio: "inherit", env: { ...process.env, PATH: path } });
  const [code] = await once(child, "exit");
  return code === 0;
};

if (!existsSync(resolve(root, "node_modules"))) {
  process.stderr.write("node_modules is missing: run `npm ci` first\n");
  process.exit(1);
}

const failed: string[] = [];
for (const check of checks) {
  if (!(await holds(check))) failed.push(check.name);
}
for (const name of failed) process.stdout.write(`verify: failed: ${name}\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
