import { nestedTypesText } from "./nested-types.ts";

/** A component that this repository builds. Paths are relative to the repository. */
export type BuiltComponent =
  /** A crate of the repository, by its folder; other folders and WIT files that it compiles are in `shares`. */
  | {
      readonly kind: "rust";
      readonly output: string;
      readonly crate: string;
      readonly folder: string;
      readonly shares: readonly string[];
      readonly docs: boolean;
      /** Folder for the types of its exports, for callers in TypeScript. */
      readonly types?: string;
    }
  /** JavaScript with an engine beside it. Its snapshot differs from build to build, so it is never compared byte for byte. */
  | { readonly kind: "qjs"; readonly output: string; readonly source: string; readonly wit: string; readonly world: string }
  /** Text format, from a file or made here. */
  | { readonly kind: "wat"; readonly output: string; readonly source: string }
  | { readonly kind: "made-text"; readonly output: string; readonly source: string; readonly text: () => string };

const examples = "examples";
const fixtures = "test/fixtures/components";
const httpClient = `${examples}/http-client`;
const workspaceFiles = `${examples}/workspace-files`;
/** What components export that list their own tools; their own words are their docs. */
const untypedWit = "wit/untyped.wit";
const bridge = "src/bridge";

const example = (crate: string, ...shares: string[]): BuiltComponent => ({
  kind: "rust",
  output: `${examples}/${crate}/${crate}.wasm`,
  crate,
  folder: `${examples}/${crate}`,
  shares,
  docs: true,
  types: `${examples}/${crate}/types`,
});

const fixture = (crate: string, options: { shares?: string[]; docs?: boolean } = {}): BuiltComponent => ({
  kind: "rust",
  output: `${fixtures}/${crate}.wasm`,
  crate,
  folder: `${fixtures}/${crate}`,
  shares: options.shares ?? [],
  docs: options.docs ?? true,
});

/** Everything but the `.wat` files, which are found. `collections` is left without docs, so that tests have one that says nothing about itself. */
export const listed: readonly BuiltComponent[] = [
  { kind: "rust", output: `${bridge}/mcp-bridge.wasm`, crate: "mcp-bridge", folder: bridge, shares: [untypedWit, httpClient], docs: false },
  example("fetch", httpClient),
  // Nobody calls it by its types, and what its tools say is in the folder that it reads.
  {
    kind: "rust",
    output: `${examples}/notices/notices.wasm`,
    crate: "notices",
    folder: `${examples}/notices`,
    shares: [untypedWit, workspaceFiles],
    docs: false,
  },
  example("github", httpClient),
  // What it says of its tools it says over MCP.
  {
    kind: "rust",
    output: `${examples}/mcp-server-component/issues-mcp.wasm`,
    crate: "issues-mcp",
    folder: `${examples}/mcp-server-component`,
    shares: [httpClient],
    docs: false,
  },
  example("workspace-read", workspaceFiles),
  example("workspace-write", workspaceFiles),
  fixture("echo"),
  fixture("mission"),
  {
    kind: "qjs",
    output: `${fixtures}/mission-qjs.wasm`,
    source: `${fixtures}/mission-qjs/mission.js`,
    wit: `${fixtures}/mission/wit`,
    world: "tool",
  },
  fixture("hostile"),
  fixture("intruder", { shares: [httpClient] }),
  fixture("unoffered"),
  fixture("collections", { docs: false }),
  fixture("saying"),
  fixture("almanac"),
  fixture("conformance", { shares: [untypedWit], docs: false }),
  fixture("serving", { docs: false }),
  fixture("faraway", { shares: [untypedWit], docs: false }),
  fixture("shifting", { shares: [untypedWit, workspaceFiles], docs: false }),
  { kind: "made-text", output: `${fixtures}/wat/nested-types.wasm`, source: "scripts/components/nested-types.ts", text: nestedTypesText },
];

export const watFolder = `${fixtures}/wat`;
