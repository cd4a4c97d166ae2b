import { chmodSync, rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { relay } from "./relay.ts";

/**
 * Passes connections on: `node forward.ts --listen PATH|PORT --to PATH|HOST:PORT`. A socket in the file system belongs to no network namespace, so two of
 * these lead from the machine's loopback into a node's: one listens on a port here, the other in there on the path between them. Prints a line once it listens.
 */

const { values } = parseArgs({ options: { listen: { type: "string" }, to: { type: "string" } } });
const { listen, to } = values;
if (listen === undefined || to === undefined) throw new Error("usage: forward.ts --listen PATH|PORT --to PATH|HOST:PORT");

const server = relay(to);
server.on("listening", () => process.stdout.write(`passing ${listen} on to ${to}\n`));
if (listen.startsWith("/")) {
  rmSync(listen, { force: true });
  server.listen(listen, () => chmodSync(listen, 0o600));
} else {
  server.listen(Number(listen), "127.0.0.1");
}
