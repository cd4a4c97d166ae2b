import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../src/api/errors.ts";
import { build } from "./components/build.ts";
import { type BuiltComponent, listed, watFolder } from "./components/inventory.ts";
import { type ComponentLock, readLock, writeLock } from "./components/lock.ts";
import { howToInstall, installToolchain, type RustToolchain, rustToolchains } from "./components/rust-toolchain.ts";
import { digestOf, digestOfSources } from "./components/sources.ts";
import { typesOf } from "./components/types.ts";

const usage = `Builds the components that are committed beside their source: the examples and what tests use.

  npm run build:examples                     builds those whose source changed
  npm run build:examples -- fetch echo       builds these
  npm run build:examples -- --all            builds all
  npm run build:examples -- --check          builds all, writes nothing, and fails where bytes differ from the committed ones
  npm run build:examples -- --check-sources  needs no compiler: fails where a component was not built from the source that is here
  npm run build:examples -- --install        installs a missing Rust target first (rustup, or apt-get for root)
`;

const root = resolve(import.meta.dirname, "..");

const inventory = (): BuiltComponent[] => [
  ...listed,
  ...readdirSync(join(root, watFolder))
    .filter((name) => name.endsWith(".wat"))
    .map(
      (name): BuiltComponent => ({ kind: "wat", output: `${watFolder}/${basename(name, ".wat")}.wasm`, source: `${watFolder}/${name}` }),
    ),
];

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** What is wrong with a committed component, as far as can be told without building it; null where nothing is. */
const staleness = (component: BuiltComponent, lock: ComponentLock): string | null => {
  const locked = lock[component.output];
  const path = join(root, component.output);
  if (!locked || !existsSync(path)) return "it was never built";
  if (locked.sources !== digestOfSources(root, component)) return "its source has changed since it was built";
  if (locked.sha256 !== digestOf(readFileSync(path))) return "its bytes are not those that were built";
  return null;
};

/** The compiler that built what is committed, or else any. */
const chooseRust = (lock: ComponentLock): RustToolchain | null => {
  const toolchains = rustToolchains();
  const locked = new Set(Object.values(lock).map((one) => one.compiler));
  return toolchains.find((one) => locked.has(one.version)) ?? toolchains[0] ?? null;
};

const needRust = (components: readonly BuiltComponent[], lock: ComponentLock, install: boolean): RustToolchain | null => {
  if (!components.some((component) => component.kind === "rust")) return null;
  const found = chooseRust(lock) ?? (install && installToolchain() ? chooseRust(lock) : null);
  if (!found) throw new Error(`no Rust compiler for WebAssembly was found. ${howToInstall}`);
  say(`Rust: ${found.version}`);
  return found;
};

const buildAndWrite = async (components: readonly BuiltComponent[], lock: ComponentLock, rust: RustToolchain | null): Promise<void> => {
  for (const component of components) {
    say(`building ${component.output}`);
    const bytes = await build(root, component, rust);
    writeFileSync(join(root, component.output), bytes);
    const compiler = component.kind === "rust" && rust ? { compiler: rust.version } : {};
    lock[component.output] = { sha256: digestOf(bytes), sources: digestOfSources(root, component), ...compiler };
    writeLock(root, lock);
    if (component.output === bridgeOutput) writeFileSync(join(root, bridgeDigestFile), withBridgeDigest(`sha256:${digestOf(bytes)}`));
    for (const [path, text] of await typeFiles(component, bytes)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    say(`  ${bytes.length} bytes`);
  }
};

/** The bridge is pinned by its digest in our code. */
const bridgeOutput = "src/bridge/mcp-bridge.wasm";
const bridgeDigestFile = "src/api/bridge-component.ts";

const withBridgeDigest = (digest: string): string =>
  readFileSync(join(root, bridgeDigestFile), "utf8").replace(/"sha256:[0-9a-f]{64}"/, JSON.stringify(digest));

/** Paths and texts of the TypeScript types that go with a component; none where nobody calls it from TypeScript. */
const typeFiles = async (component: BuiltComponent, bytes: Uint8Array): Promise<[string, string][]> => {
  if (component.kind !== "rust" || component.types === undefined) return [];
  const folder = join(root, component.types);
  return [...(await typesOf(bytes))].map(([name, text]) => [join(folder, name), text]);
};

const checkBytes = async (components: readonly BuiltComponent[], lock: ComponentLock, rust: RustToolchain | null): Promise<string[]> => {
  const problems: string[] = [];
  for (const component of components) {
    const stale = staleness(component, lock);
    if (stale) problems.push(`${component.output}: ${stale}`);
    // An engine's snapshot is never the same twice; that its source did not change is all that can be checked.
    if (stale || component.kind === "qjs") continue;
    const locked = lock[component.output];
    if (component.kind === "rust" && locked?.compiler !== rust?.version) {
      problems.push(`${component.output}: built by ${locked?.compiler}, which is not here, so its bytes can't be compared`);
      continue;
    }
    say(`building ${component.output}`);
    const bytes = await build(root, component, rust);
    if (digestOf(bytes) !== locked?.sha256) problems.push(`${component.output}: building it again gives other bytes (${digestOf(bytes)})`);
    for (const [path, text] of await typeFiles(component, bytes)) {
      if (!existsSync(path) || readFileSync(path, "utf8") !== text) problems.push(`${path}: these are not the component's types`);
    }
  }
  return problems;
};

const main = async (): Promise<number> => {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      "check-sources": { type: "boolean", default: false },
      install: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const all = inventory();
  const unknown = positionals.filter((name) => !all.some((component) => basename(component.output, ".wasm") === name));
  if (unknown.length > 0) throw new Error(`there is no component ${unknown.join(", ")}`);
  const named = positionals.length > 0 ? all.filter((component) => positionals.includes(basename(component.output, ".wasm"))) : all;
  const lock = readLock(root);

  const problems = options.check
    ? await checkBytes(named, lock, needRust(named, lock, options.install))
    : options["check-sources"]
      ? named.flatMap((component) => staleness(component, lock)?.replace(/^/, `${component.output}: `) ?? [])
      : null;
  if (problems) {
    for (const problem of problems) say(problem);
    say(problems.length === 0 ? `${named.length} components are as committed` : "run npm run build:examples");
    return problems.length === 0 ? 0 : 1;
  }

  const wanted = options.all || positionals.length > 0 ? named : named.filter((component) => staleness(component, lock) !== null);
  await buildAndWrite(wanted, lock, needRust(wanted, lock, options.install));
  say(wanted.length === 0 ? "nothing has changed" : `built ${wanted.length} of ${all.length}`);
  return 0;
};

try {
  process.exitCode = await main();
} catch (thrown) {
  say(`build-components: ${messageOf(thrown)}`);
  process.exitCode = 1;
}
