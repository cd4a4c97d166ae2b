import { readFile } from "node:fs/promises";
import { bridgeDigest } from "../api/bridge-component.ts";
import { sha256Of } from "../api/digest.ts";
import { messageOf, Stalled } from "../api/errors.ts";

/** Beside our own code, in the sources and in `dist` alike. */
const place = new URL("../bridge/mcp-bridge.wasm", import.meta.url);

/** The bytes of the bridge that comes with Ambit; they hash to `bridgeDigest`. Throws `Stalled` (`BridgeUnavailable`) where the installation is not whole. */
export const readBridge = async (): Promise<Uint8Array> => {
  const bytes = await readFile(place).catch((cause: unknown) => {
    throw new Stalled("BridgeUnavailable", `the bridge to MCP servers can't be read from this installation: ${messageOf(cause)}`, {
      cause,
    });
  });
  const digest = sha256Of(bytes);
  if (digest === bridgeDigest) return bytes;
  throw new Stalled(
    "BridgeUnavailable",
    `the bridge to MCP servers in this installation is ${digest} and not ${bridgeDigest}; install Ambit anew`,
  );
};
