import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/**
 * MCP's official inspector, for its command. It is some 110 MB with what it needs, so it is no dependency of ours: it is installed once into the user's cache
 * folder, outside the checkout.
 */

const name = "@modelcontextprotocol/inspector";
const version = "2.12.0";

const cacheFolder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ambit", `mcp-inspector-${version}`);
const command = join(cacheFolder, "node_modules", name, "clients", "launcher", "build", "index.js");

const run = promisify(execFile);

const isInstalled = (): Promise<boolean> =>
  access(command).then(
    () => true,
    () => false,
  );

/** Null where it is installed. */
export const whyNoInspector = async (): Promise<string | null> =>
  (await isInstalled()) ? null : `${name} is not installed in ${cacheFolder}; npm test does that`;

/** Installs it unless it is there already; `say` gets a sentence when that takes time. Of two at once the last to finish puts it in place. */
export const installInspector = async (say: (sentence: string) => void): Promise<void> => {
  if (await isInstalled()) return;
  say(`installing ${name} ${version} into ${cacheFolder}: some seconds, once`);
  const parent = join(cacheFolder, "..");
  await mkdir(parent, { recursive: true });
  const scratch = await mkdtemp(join(parent, "mcp-inspector-"));
  try {
    await writeFile(join(scratch, "package.json"), JSON.stringify({ private: true, dependencies: { [name]: version } }));
    await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: scratch });
    await rm(cacheFolder, { recursive: true, force: true });
    await rename(scratch, cacheFolder);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
};

/** What the command says on standard output. Rejects with what it says on standard error where it fails. */
export const runInspector = async (url: string, token: string, era: "legacy" | "modern", args: readonly string[]): Promise<string> => {
  const own = ["--transport", "http", "--server-url", url, "--header", `Authorization: Bearer ${token}`, "--protocol-era", era];
  const home = await mkdtemp(join(cacheFolder, "home-"));
  try {
    const { stdout } = await run(process.execPath, [command, "--cli", ...own, "--format", "json", ...args], {
      env: { ...process.env, HOME: home },
      timeout: 60_000,
    });
    return stdout;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};
