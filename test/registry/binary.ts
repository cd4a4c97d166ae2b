import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Stalled } from "../../src/api/errors.ts";

/**
 * The registry that the OCI tests pull from: go-containerregistry's, a real server that we did not write. It is built once into the user's cache
 * folder, outside the checkout, so that a clean clone does not build it again.
 */

const modulePath = "github.com/google/go-containerregistry";
const moduleVersion = "v0.22.1";

const cacheFolder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ambit", `go-containerregistry-${moduleVersion}`);

export const registryBinary = join(cacheFolder, "registry");

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/**
 * Builds the registry unless it is there already; `say` gets a sentence when that takes time. Throws `Stalled` with code `GoMissing` when there is no Go
 * to build it with. Two processes at once each build their own and the last one to finish puts it in place.
 */
export const buildRegistry = async (say: (sentence: string) => void): Promise<void> => {
  if (await exists(registryBinary)) return;
  const run = promisify(execFile);
  await run("go", ["version"]).catch((thrown: unknown) => {
    throw new Stalled("GoMissing", "no `go` on the PATH to build the test registry with: install Go 1.25 or newer", { cause: thrown });
  });
  say(`building the test registry (${modulePath} ${moduleVersion}) into ${cacheFolder}: about a minute, once`);
  await mkdir(cacheFolder, { recursive: true });
  const scratch = await mkdtemp(join(cacheFolder, "build-"));
  try {
    await run("go", ["install", `${modulePath}/cmd/registry@${moduleVersion}`], {
      env: { ...process.env, GOBIN: scratch, CGO_ENABLED: "0" },
    });
    await rename(join(scratch, "registry"), registryBinary);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
};
