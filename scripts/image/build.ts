import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { writeImage } from "./archive.ts";
import { appFiles, appFolder, nodePath, systemFiles, user } from "./contents.ts";

const root = resolve(import.meta.dirname, "../..");

/** The version in package.json. */
export const ambitVersion = async (): Promise<string> => JSON.parse(await readFile(join(root, "package.json"), "utf8")).version;

/** Compiles `src` and writes Ambit's image as a docker-archive, on Linux. Throws where a file can't be parsed; what it had to say has gone to stderr. */
export const buildImage = async (out: string, reference: string): Promise<void> => {
  if (process.platform !== "linux")
    throw new Error(`the image takes Node from this machine, which must be Linux, not ${process.platform}: use the Dockerfile`);
  const dist = await mkdtemp(join(tmpdir(), "ambit-dist-"));
  try {
    await compile(dist);
    await mkdir(dirname(out), { recursive: true });
    await writeImage(out, {
      reference,
      layers: [await systemFiles(), appFiles(root, dist)],
      config: {
        Entrypoint: [nodePath, `${appFolder}/dist/src/cli/main.js`],
        User: `${user.id}:${user.id}`,
        Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "NODE_ENV=production"],
        WorkingDir: appFolder,
        Labels: { "org.opencontainers.image.title": "ambit", "org.opencontainers.image.version": await ambitVersion() },
      },
    });
  } finally {
    await rm(dist, { recursive: true, force: true });
  }
};

/** What comes with our code and is none of its files. */
const bridge = "src/bridge/mcp-bridge.wasm";

const compile = async (outDir: string): Promise<void> => {
  // Types are `npm run verify`'s to judge; every file compiles by itself (`isolatedModules`).
  const args = ["--noCheck", "-p", join(root, "tsconfig.build.json"), "--outDir", outDir];
  const child = spawn(join(root, "node_modules/.bin/tsc"), args, { stdio: ["ignore", 2, 2] });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`tsc ended with ${code}: the image is not built`);
  await cp(join(root, bridge), join(outDir, bridge));
};
