import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { componentNew, parse } from "@bytecodealliance/jco-transpile/wasm-tools";
import { embedDocs } from "../../src/wit/embed-docs.ts";
import { parseWitDocs, type WitFile } from "../../src/wit/parse-wit-docs.ts";
import type { BuiltComponent } from "./inventory.ts";
import type { RustToolchain } from "./rust-toolchain.ts";

type Kind<K extends BuiltComponent["kind"]> = Extract<BuiltComponent, { kind: K }>;

/** The bytes of a component, built now; crates that `Cargo.lock` does not have are resolved into it. Throws where a compiler does not end well; what it had to say has gone to stderr. */
export const build = async (root: string, component: BuiltComponent, rust: RustToolchain | null): Promise<Uint8Array> => {
  switch (component.kind) {
    case "rust":
      if (!rust) throw new Error(`${component.output} needs a Rust compiler`);
      return buildRust(root, component, rust);
    case "qjs":
      return buildQjs(root, component);
    case "wat":
      return parse(readFileSync(join(root, component.source), "utf8"));
    case "made-text":
      return parse(component.text());
  }
};

/** One crate an invocation: cargo unites the features of what it builds together, and the bytes would depend on what else was asked for. */
const buildRust = async (root: string, component: Kind<"rust">, rust: RustToolchain): Promise<Uint8Array> => {
  const targetFolder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "ambit", "components");
  const { status } = spawnSync(rust.cargo, ["build", "--release", "--package", component.crate, ...rust.arguments], {
    cwd: root,
    env: { CARGO_TARGET_DIR: targetFolder, ...process.env, ...rust.environment },
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) throw new Error(`cargo could not build ${component.crate}`);
  const folder = process.env.CARGO_TARGET_DIR ?? targetFolder;
  const module = readFileSync(join(folder, "wasm32-unknown-unknown/release", `${component.crate.replaceAll("-", "_")}.wasm`));
  const bytes = await componentNew(module, []);
  if (!component.docs) return bytes;
  return embedDocs(bytes, parseWitDocs(witFiles(join(root, component.folder, "wit"))));
};

const buildQjs = async (root: string, component: Kind<"qjs">): Promise<Uint8Array> => {
  const { componentize } = await import("componentize-qjs");
  const built = await componentize({
    witPath: join(root, component.wit),
    jsSource: readFileSync(join(root, component.source), "utf8"),
    world: component.world,
    optSize: true,
    stubWasi: true,
  });
  return embedDocs(built.component, parseWitDocs(witFiles(join(root, component.wit))));
};

const witFiles = (folder: string): WitFile[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".wit"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(folder, path), "utf8") }));
