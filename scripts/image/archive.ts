import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Header, type Pack, pack } from "tar-stream";

/** One file of an image: from a file here, from bytes, or an empty folder. Paths are absolute in the image. */
export type ImageFile = { readonly path: string; readonly mode: number } & (
  | { readonly from: string }
  | { readonly content: string | Uint8Array }
  | { readonly folder: true }
);

/** What is the same whenever the files are: no times, no owners. */
export interface Image {
  /** `NAME:TAG`, the name by which it is found once it is loaded. */
  readonly reference: string;
  /** From what changes rarely to what changes often: a loader keeps the layers that it has. */
  readonly layers: readonly (readonly ImageFile[])[];
  readonly config: {
    readonly Entrypoint: readonly string[];
    readonly User: string;
    readonly Env?: readonly string[];
    readonly WorkingDir?: string;
    readonly Labels?: Readonly<Record<string, string>>;
  };
}

/** Go's names, which images use, for Node's. */
const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * Writes a docker-archive: what `docker save` gives and `docker load`, `ctr images import`, `podman load`, `kind load image-archive` and `crane push` take.
 * The same files give the same bytes.
 */
export const writeImage = async (out: string, { reference, layers, config }: Image): Promise<void> => {
  const scratch = await mkdtemp(`${out}.writing-`);
  try {
    const digests: string[] = [];
    for (const [index, files] of layers.entries()) digests.push(await writeLayer(join(scratch, String(index)), files));
    const configuration = JSON.stringify({
      architecture: architectures[process.arch] ?? process.arch,
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: digests.map((digest) => `sha256:${digest}`) },
      history: digests.map(() => ({ created_by: "ambit" })),
    });
    const configName = `${createHash("sha256").update(configuration).digest("hex")}.json`;
    const manifest = [{ Config: configName, RepoTags: [reference], Layers: digests.map((digest) => `${digest}/layer.tar`) }];
    const written = join(scratch, "image");
    await writeTar(written, async (tar) => {
      tar.entry(header(configName, 0o644), configuration);
      for (const [index, digest] of digests.entries()) await addFile(tar, `${digest}/layer.tar`, 0o644, join(scratch, String(index)));
      tar.entry(header("manifest.json", 0o644), JSON.stringify(manifest));
    });
    await rename(written, out);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
};

const header = (name: string, mode: number): Partial<Header> & { name: string } => ({
  name,
  mode,
  uid: 0,
  gid: 0,
  uname: "",
  gname: "",
  mtime: new Date(0),
});

/** Writes one layer's archive and gives its sha256. Folders on the way to a file come before it, and everything in order of its path. */
const writeLayer = async (out: string, files: readonly ImageFile[]): Promise<string> => {
  const entries = new Map<string, ImageFile>();
  for (const file of files) {
    for (let folder = dirname(file.path); folder !== "/"; folder = dirname(folder)) {
      if (!entries.has(folder)) entries.set(folder, { path: folder, mode: 0o755, folder: true });
    }
    entries.set(file.path, file);
  }
  const inOrder = [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  return writeTar(out, async (tar) => {
    for (const file of inOrder) {
      const name = file.path.slice(1);
      if ("folder" in file) tar.entry({ ...header(`${name}/`, file.mode), type: "directory" });
      else if ("content" in file) tar.entry(header(name, file.mode), Buffer.from(file.content));
      else await addFile(tar, name, file.mode, file.from);
    }
  });
};

const addFile = async (tar: Pack, name: string, mode: number, from: string): Promise<void> => {
  const { size } = await stat(from);
  await pipeline(createReadStream(from), tar.entry({ ...header(name, mode), size }));
};

/** Writes what `fill` puts into an archive, and gives the archive's sha256. */
const writeTar = async (out: string, fill: (tar: Pack) => Promise<void>): Promise<string> => {
  const tar = pack();
  const hash = createHash("sha256");
  const hashed = new Transform({
    transform: (chunk, _encoding, done) => {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  const filled = fill(tar).then(
    () => tar.finalize(),
    (thrown: unknown) => {
      tar.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
      throw thrown;
    },
  );
  await Promise.all([pipeline(tar, hashed, createWriteStream(out)), filled]);
  return hash.digest("hex");
};
