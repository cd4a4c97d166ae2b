import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const tsc = join(root, "node_modules/.bin/tsc");

/** What somebody who installed the package writes. */
const consumer = `import { AmbitClient, CatalogueError, type ToolShapes } from "ambit/client";

const ambit = new AmbitClient({ url: "http://127.0.0.1:9", token: () => "none", retries: 0 });
const tools: Promise<ToolShapes["anthropic"][]> = ambit.conversation("anthropic", { search: "only" }).tools();
tools.catch((error: unknown) => console.log(error instanceof CatalogueError && error.code));
// @ts-expect-error: there is no such format
export const wrong = () => ambit.declarations("cohere");
`;

test("whoever installs the package imports a typed client from it, which needs no other package", async () => {
  const place = await mkdtemp(join(tmpdir(), "ambit-client-"));
  try {
    const installed = join(place, "node_modules/ambit");
    await mkdir(join(place, "node_modules/@types"), { recursive: true });
    await mkdir(installed);
    await symlink(join(root, "node_modules/@types/node"), join(place, "node_modules/@types/node"));
    await symlink(join(root, "node_modules/undici-types"), join(place, "node_modules/undici-types"));
    await cp(join(root, "package.json"), join(installed, "package.json"));
    await run(tsc, ["-p", join(root, "tsconfig.client.json"), "--outDir", join(installed, "dist")]);
    await writeFile(join(place, "package.json"), '{"type":"module"}');
    await writeFile(join(place, "agent.ts"), consumer);
    await run(tsc, ["--strict", "--module", "nodenext", "--target", "es2024", "--types", "node", "agent.ts"], { cwd: place });
    const { stdout } = await run(process.execPath, ["agent.js"], { cwd: place });
    assert.match(stdout, /^Unreachable\n/);
  } finally {
    await rm(place, { recursive: true });
  }
});

test("the client runs nothing but its own files and Node's", async () => {
  const seen = new Set<string>();
  const look = async (file: string): Promise<void> => {
    if (seen.has(file)) return;
    seen.add(file);
    const source = await readFile(new URL(file, new URL("../../src/client/", import.meta.url)), "utf8");
    for (const [, isType, specifier = ""] of source.matchAll(/^(?:import|export) (type )?[^;]*? from "([^"]+)";$/gms)) {
      if (isType || specifier.startsWith("node:")) continue;
      assert.match(specifier, /^\.\/[a-z-]+\.ts$/, `${file} imports ${specifier}`);
      await look(specifier.slice(2));
    }
  };
  await look("client.ts");
  assert.ok(seen.has("requests.ts"));
});
