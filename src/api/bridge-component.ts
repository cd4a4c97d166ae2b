import type { Sha256Digest } from "./digest.ts";

/** How the bridge to MCP servers is named where a component's image is: it comes with Ambit, and no Workload can name it. */
export const bridgeImage = "ambit:mcp-bridge";

/** sha256 of the bridge's bytes, `src/bridge/mcp-bridge.wasm`. `npm run build:examples` writes it when it builds them. */
export const bridgeDigest: Sha256Digest = "sha256:8a4c7d81b585f5b06be406993990bb35fec1a3a1df6460ba7ae34ecc93e50718";
