import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const target = "wasm32-unknown-unknown";

/** A Rust compiler that can make core modules for components, and how it is called. */
export interface RustToolchain {
  /** What the bytes depend on: compiler, where the standard library comes from, linker. */
  readonly version: string;
  readonly cargo: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly arguments: readonly string[];
}

/**
 * Panics of a guest are traps whose text nobody sees, so neither their messages nor the places in the source are compiled in: a quarter smaller, and
 * no path of the machine is in the bytes.
 */
const flagsFromSource = ["-Zlocation-detail=none", "-Zunstable-options", "-Cpanic=immediate-abort"];

/**
 * Every usable toolchain, Debian's packages first: they bring the standard library's source, so that everything is compiled by one compiler with one
 * set of flags. A rustup toolchain is used with its source (component `rust-src`) or else with its prebuilt target.
 */
export const rustToolchains = (): RustToolchain[] => [debianToolchain(), rustupToolchain()].filter((one) => one !== null);

/** What a person types where there is none. */
export const howToInstall = `Install one of these:
  rustup:  rustup component add rust-src    (or: rustup target add ${target})
  Debian:  apt-get install ${debianPackages().join(" ")}`;

/**
 * Installs what is missing where that asks nobody: the target of a rustup toolchain, or Debian's packages for root. Gives what it ran, or null where
 * neither is there.
 */
export const installToolchain = (): string | null => {
  if (run("rustup", ["--version"]) !== null) return announce("rustup", ["target", "add", target]);
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    announce("apt-get", ["update"]);
    return announce("apt-get", ["install", "-y", "--no-install-recommends", ...debianPackages()]);
  }
  return null;
};

function debianPackages(): string[] {
  return ["rustc-web", "cargo-web", "libstd-rust-web-dev", "rust-web-src", "lld-19"];
}

const debianToolchain = (): RustToolchain | null => {
  const rustc = "/usr/bin/rustc";
  const cargo = "/usr/bin/cargo";
  const version = run(rustc, ["--version"]);
  const number = version && /^rustc (\d+\.\d+\.\d+)/.exec(version)?.[1];
  const linker = newestLinker();
  const library = `/usr/src/rustc-${number}/library`;
  if (!number || !linker || !existsSync(library) || !existsSync(cargo)) return null;
  return fromSource({ cargo, rustc, version, library, linker });
};

const rustupToolchain = (): RustToolchain | null => {
  const bin = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const rustc = [join(bin, "bin/rustc"), "rustc"].find((path) => run(path, ["--version"]) !== null);
  if (!rustc) return null;
  const version = run(rustc, ["--version"]);
  const libraries = join(run(rustc, ["--print", "sysroot"]) ?? "", "lib/rustlib");
  if (!version || rustc === "/usr/bin/rustc") return null;
  const cargo = rustc === "rustc" ? "cargo" : join(bin, "bin/cargo");
  const library = join(libraries, "src/rust/library");
  if (existsSync(library)) return fromSource({ cargo, rustc, version, library, linker: null });
  if (!existsSync(join(libraries, target))) return null;
  return { version: `${version}, prebuilt standard library`, cargo, environment: {}, arguments: ["--target", target] };
};

interface FromSource {
  readonly cargo: string;
  readonly rustc: string;
  readonly version: string;
  readonly library: string;
  /** Null where the toolchain brings its own. */
  readonly linker: string | null;
}

/** Building the standard library is an unstable option of cargo, which a released compiler takes under `RUSTC_BOOTSTRAP`. */
const fromSource = ({ cargo, rustc, version, library, linker }: FromSource): RustToolchain => ({
  version: `${version}, standard library from source, ${linker ? (run(linker, ["--version"]) ?? linker) : "its own linker"}`,
  cargo,
  environment: {
    RUSTC: rustc,
    RUSTC_BOOTSTRAP: "1",
    __CARGO_TESTS_ONLY_SRC_ROOT: library,
    RUSTFLAGS: [...(linker ? [`-Clinker=${linker}`] : []), ...flagsFromSource].join(" "),
  },
  arguments: ["-Z", "build-std=std", "--target", target],
});

const newestLinker = (): string | null => {
  const versions = readdirSync("/usr/bin").flatMap((name) => /^wasm-ld-(\d+)$/.exec(name)?.[1] ?? []);
  const newest = versions.map(Number).sort((a, b) => b - a)[0];
  return newest === undefined ? null : `/usr/bin/wasm-ld-${newest}`;
};

const run = (command: string, args: readonly string[]): string | null => {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
};

const announce = (command: string, args: readonly string[]): string => {
  const line = [command, ...args].join(" ");
  process.stderr.write(`$ ${line}\n`);
  spawnSync(command, args, { stdio: ["ignore", 2, 2] });
  return line;
};
