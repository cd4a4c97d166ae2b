import type { Sha256Digest } from "./digest.ts";

/** How the bridge to MCP servers is named where a component's image is: it comes with Ambit, and no Workload can name it. */
export const bridgeImage = "ambit:mcp-bridge";

/** sha256 of the bridge's bytes, `src/bridge/mcp-bridge.wasm`. `npm run build:examples` writes it when it builds them. */
export const bridgeDigest: Sha256Digest = "sha256:064acf23c46d0ed715501d8c6748c3a42eff9caee64a3710ddccc8cbe9d87e35";
