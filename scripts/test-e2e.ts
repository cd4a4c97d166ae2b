import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../src/api/errors.ts";
import { load } from "../test/cluster/containerd.ts";
import { down, status, up } from "../test/cluster/node.ts";
import { defaultNodeName, nodePlaces } from "../test/cluster/places.ts";
import { whyNoCluster } from "../test/cluster/start-node.ts";
import { testImage } from "../test/cluster/test-image.ts";
import { buildImage } from "./image/build.ts";

/**
 * The suites that need a whole cluster: starts the built-in node, puts Ambit's image onto it, runs `test/e2e`, and ends the node.
 *
 *   npm run test:e2e -- [--keep] [--name PATTERN]... [FILE OR GLOB]...
 *
 * A node that was up before stays up, as does one with `--keep`. With `AMBIT_TEST_KUBECONFIG` the suites run on that cluster, whose nodes must have
 * the image `localhost/ambit:test` (`npm run image -- --tag localhost/ambit:test`).
 */

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

const { values, positionals } = parseArgs({
  options: { keep: { type: "boolean" }, name: { type: "string", multiple: true } },
  allowPositionals: true,
});

const places = nodePlaces(defaultNodeName());

const loadAmbit = async (): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-image-"));
  try {
    say("building Ambit's image");
    const archive = join(folder, "image.tar");
    await buildImage(archive, testImage);
    await load(places, archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Whether there is a built-in node to end afterwards. What can't be prepared makes the suites skip themselves, or fail, with the reason. */
const prepare = async (): Promise<boolean> => {
  if (process.env.AMBIT_TEST_KUBECONFIG) return false;
  const reason = await whyNoCluster();
  if (reason !== null) {
    say(`not prepared: ${reason}`);
    return false;
  }
  const wasReady = (await status(places)).ready;
  try {
    await up(places, say);
    await loadAmbit();
  } catch (thrown) {
    say(`not prepared: ${messageOf(thrown)}`);
  }
  return !wasReady;
};

const runTests = async (): Promise<number> => {
  const globs = positionals.length > 0 ? positionals : ["test/e2e/**/*.test.ts"];
  // They share one node, its world and what is installed there.
  const names = (values.name ?? []).flatMap((name) => ["--name", name]);
  const child = spawn(process.execPath, [resolve(import.meta.dirname, "test.ts"), "--one-at-a-time", ...names, ...globs], {
    stdio: "inherit",
  });
  const [code] = await once(child, "exit");
  return code ?? 1;
};

const startedHere = await prepare();
try {
  process.exitCode = await runTests();
} finally {
  if (startedHere && values.keep !== true) await down(places, say);
}
