import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeImage } from "./image/archive.ts";
import { appFiles, appFolder, nodePath, systemFiles, user } from "./image/contents.ts";

/**
 * Builds Ambit's image without Docker: the Node binary that runs this script, the libraries it links, and our compiled code with its production packages.
 *
 *   npm run image -- [--out dist/image.tar] [--tag ambit:VERSION]
 *
 * The archive is a docker-archive; `npm run cluster -- load FILE` puts it onto the test node.
 */

const root = resolve(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const { values } = parseArgs({ options: { out: { type: "string" }, tag: { type: "string" }, help: { type: "boolean", short: "h" } } });

const compile = (outDir: string): void => {
  const tsc = join(root, "node_modules/.bin/tsc");
  const { status } = spawnSync(tsc, ["-p", join(root, "tsconfig.build.json"), "--outDir", outDir], { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error(`tsc ended with ${status}: the image is not built`);
};

const buildImage = async (out: string, reference: string): Promise<void> => {
  const dist = await mkdtemp(join(tmpdir(), "ambit-dist-"));
  try {
    compile(dist);
    mkdirSync(dirname(out), { recursive: true });
    await writeImage(out, {
      reference,
      layers: [await systemFiles(), appFiles(root, dist)],
      config: {
        Entrypoint: [nodePath, `${appFolder}/dist/src/cli/main.js`],
        User: `${user.id}:${user.id}`,
        Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "NODE_ENV=production"],
        WorkingDir: appFolder,
        Labels: { "org.opencontainers.image.title": "ambit", "org.opencontainers.image.version": version },
      },
    });
  } finally {
    await rm(dist, { recursive: true, force: true });
  }
};

if (values.help) {
  process.stdout.write("usage: npm run image -- [--out FILE] [--tag NAME:TAG]\n");
} else if (process.platform !== "linux") {
  process.stderr.write(`the image takes Node from this machine, which must be Linux, not ${process.platform}: use the Dockerfile\n`);
  process.exitCode = 1;
} else {
  const out = resolve(values.out ?? join(root, "dist/image.tar"));
  const reference = values.tag ?? `ambit:${version}`;
  await buildImage(out, reference);
  process.stdout.write(`${reference} in ${out}: ${Math.round(statSync(out).size / 1e6)} MB\n`);
}
