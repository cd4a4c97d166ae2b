import { transpileBytes } from "@bytecodealliance/jco-transpile";

const header = `// Made from the component by \`npm run build:examples\`: the types with which TypeScript calls it.
// biome-ignore-all format: as the generator writes it
// biome-ignore-all lint: as the generator writes it
// biome-ignore-all assist: as the generator writes it
`;

/** TypeScript declarations of the interfaces that a component exports, by file name. Those of `wasi:` packages come with the WASI implementation. */
export const typesOf = async (bytes: Uint8Array): Promise<Map<string, string>> => {
  const { files } = await transpileBytes(bytes, { name: "component", instantiation: "sync", wasiShim: false });
  const interfaces = Object.entries(files).filter(([path]) => /^interfaces\/(?!wasi-).*\.d\.ts$/.test(path));
  return new Map(interfaces.map(([path, text]) => [path.slice("interfaces/".length), header + new TextDecoder().decode(text)]));
};
