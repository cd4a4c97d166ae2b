import { execFile } from "node:child_process";
import { globSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ImageFile } from "./archive.ts";

/** Where our code is in an image. */
export const appFolder = "/app";

/** Where Node is in an image. */
export const nodePath = "/usr/local/bin/node";

/** Nobody in particular: what Kubernetes' restricted profile accepts. */
export const user = { id: 65532, name: "ambit" } as const;

/** The Node that runs this, the libraries that it links, and the few files that programs expect of a system. */
export const systemFiles = async (): Promise<ImageFile[]> => [
  { path: nodePath, mode: 0o755, from: realpathSync(process.execPath) },
  ...(await librariesOf(process.execPath)).map((path) => ({ path, mode: 0o755, from: realpathSync(path) })),
  {
    path: "/etc/passwd",
    mode: 0o644,
    content: `root:x:0:0:root:/root:/sbin/nologin\n${user.name}:x:${user.id}:${user.id}::/:/sbin/nologin\n`,
  },
  { path: "/etc/group", mode: 0o644, content: `root:x:0:\n${user.name}:x:${user.id}:\n` },
  // Names of the pod's /etc/hosts count before its DNS.
  { path: "/etc/nsswitch.conf", mode: 0o644, content: "hosts: files dns\n" },
  { path: "/tmp", mode: 0o1777, folder: true },
];

/** The C library loads these by name when a host is looked up, so that `ldd` doesn't list them. Newer ones have them built in. */
const loadedByName = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

const librariesOf = async (binary: string): Promise<string[]> => {
  const { stdout } = await promisify(execFile)("ldd", [binary]);
  const listed = stdout.split("\n").flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  const libc = listed.find((path) => path.endsWith("/libc.so.6"));
  const beside = libc === undefined ? [] : loadedByName.map((name) => libc.replace("libc.so.6", name));
  return [...listed, ...beside.filter((path) => statSync(path, { throwIfNoEntry: false }))];
};

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
}

/** Never needed to run: types, maps, sources, texts. */
const unneeded = /\.(d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|tsbuildinfo)$/;

/** Never needed to run, at the root of a package. */
const unneededFolders = /\/node_modules\/(@[^/]+\/)?[^/]+\/(test|tests|docs|examples|benchmark|benchmarks|prebuilds)\//;

/**
 * Packages that are not taken along: Node, whose binary is in the image already; and what jco imports only to optimise, which would be a third of the
 * image (a test of the image transpiles a component without).
 */
const leftOut = /^node_modules\/(node-linux-[^/]+|binaryen)$/;

/** Our compiled code from `dist` and the packages that it runs with, as `npm ci --omit=dev` would install them here. */
export const appFiles = (root: string, dist: string): ImageFile[] => {
  const lock: Lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const packages = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== "" && dev !== true && !leftOut.test(path))
    .map(([path]) => path);
  return [
    { path: `${appFolder}/package.json`, mode: 0o644, from: join(root, "package.json") },
    ...filesBelow(dist, "dist"),
    ...packages
      .flatMap((path) => filesBelow(join(root, path), path))
      .filter(({ path }) => !unneeded.test(path) && !unneededFolders.test(path)),
  ];
};

/** A package's own files; packages inside of it are listed by themselves. */
const filesBelow = (folder: string, path: string): (ImageFile & { from: string })[] =>
  globSync("**/*", { cwd: folder, exclude: ({ name }) => name === "node_modules", withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((from) => ({ path: `${appFolder}/${path}${from.slice(folder.length)}`, mode: 0o644, from }));
