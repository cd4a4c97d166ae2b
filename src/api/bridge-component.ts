import type { Sha256Digest } from "./digest.ts";

/** How the bridge to MCP servers is named where a component's image is: it comes with Ambit, and no Workload can name it. */
export const bridgeImage = "ambit:mcp-bridge";

/** sha256 of the bridge's bytes, `src/bridge/mcp-bridge.wasm`. `npm run build:examples` writes it when it builds them. */
export const bridgeDigest: Sha256Digest = "sha256:0bc23b5b263a89d36cb9e1a6e9d6112faac0243e8c491372c48e0fb185e22d64";
