import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { load } from "../test/cluster/containerd.ts";
import { down, status, up } from "../test/cluster/node.ts";
import { defaultNodeName, nodePlaces } from "../test/cluster/places.ts";
import { canInstall, installPackages } from "../test/cluster/requirements.ts";
import { whyNoCluster } from "../test/cluster/start-node.ts";
import { testImage } from "../test/cluster/test-image.ts";
import { apiTools, buildTools } from "../test/cluster/tools.ts";
import { installInspector } from "../test/conformance/inspector.ts";
import { buildRegistry } from "../test/registry/binary.ts";
import { storePackage, whyNoStore } from "../test/support/counter-store.ts";
import { buildImage } from "./image/build.ts";

export type Say = (line: string) => void;

/** Tests that need the same surroundings. What can't be prepared makes its tests skip themselves, or fail, with the reason. */
export interface Suite {
  /** Below `test`. */
  readonly folders: readonly string[];
  /** How many files run at once. */
  readonly together: number;
  /** Well above what its slowest file takes on a busy machine: it ends what hangs. */
  readonly timeoutMs: number;
  /** Each makes something that tests look for, says what takes long, and gives what undoes it afterwards, where that is anything. */
  readonly preparations: readonly ((say: Say) => Promise<Undo | undefined>)[];
}

export type Undo = (say: Say) => Promise<void>;

const registry = async (say: Say): Promise<undefined> => {
  await buildRegistry(say);
};

/** What replicas of the catalogue count in. */
const counterStore = async (say: Say): Promise<undefined> => {
  if (whyNoStore() !== null && canInstall()) installPackages([storePackage], say);
};

const inspector = async (say: Say): Promise<undefined> => {
  await installInspector(say);
};

const apiServer = async (say: Say): Promise<undefined> => {
  if (process.env.AMBIT_TEST_KUBECONFIG || process.env.KUBEBUILDER_ASSETS) return;
  await buildTools(apiTools, say);
};

/** The built-in node with Ambit's image on it, which ends afterwards unless it was up before. On the cluster of `AMBIT_TEST_KUBECONFIG` the image must be there. */
const node = async (say: Say): Promise<Undo | undefined> => {
  if (process.env.AMBIT_TEST_KUBECONFIG) return;
  const reason = await whyNoCluster();
  if (reason !== null) throw new Error(reason);
  const places = nodePlaces(defaultNodeName());
  const wasReady = (await status(places)).ready;
  const end: Undo = (say) => down(places, say);
  const folder = await mkdtemp(join(tmpdir(), "ambit-image-"));
  try {
    await up(places, say);
    say("building Ambit's image");
    const archive = join(folder, "image.tar");
    await buildImage(archive, testImage);
    await load(places, archive);
  } catch (thrown) {
    if (!wasReady) await end(say);
    throw thrown;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return wasReady ? undefined : end;
};

/** In the order in which they run: what is quick to fail first. */
export const suites = {
  local: {
    folders: ["unit", "integration", "conformance"],
    together: availableParallelism(),
    timeoutMs: 180_000,
    preparations: [registry, counterStore, inspector],
  },
  api: { folders: ["api"], together: availableParallelism(), timeoutMs: 600_000, preparations: [apiServer] },
  // They share one node, its world and what is installed there.
  e2e: { folders: ["e2e"], together: 1, timeoutMs: 600_000, preparations: [node] },
} as const satisfies Record<string, Suite>;

export type SuiteName = keyof typeof suites;
