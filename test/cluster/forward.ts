import { chmodSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { parseArgs } from "node:util";

/**
 * Passes connections on: `node forward.ts --listen PATH|PORT --to PATH|HOST:PORT`. A socket in the file system belongs to no network namespace, so two of
 * these lead from the machine's loopback into a node's: one listens on a port here, the other in there on the path between them.
 */

const { values } = parseArgs({ options: { listen: { type: "string" }, to: { type: "string" } } });
const { listen, to } = values;
if (listen === undefined || to === undefined) throw new Error("usage: forward.ts --listen PATH|PORT --to PATH|HOST:PORT");

const dial = () => {
  if (to.startsWith("/")) return connect(to);
  const colon = to.lastIndexOf(":");
  return connect({ host: to.slice(0, colon), port: Number(to.slice(colon + 1)) });
};

const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (here) => {
  const there = dial();
  there.allowHalfOpen = true;
  here.pipe(there).pipe(here);
  // Either end may be reset at any time; the other one learns it and nothing else is to be done.
  here.on("error", () => there.destroy()).on("close", () => there.destroy());
  there.on("error", () => here.destroy()).on("close", () => here.destroy());
});

if (listen.startsWith("/")) {
  rmSync(listen, { force: true });
  server.listen(listen, () => chmodSync(listen, 0o600));
} else {
  server.listen(Number(listen), "127.0.0.1");
}
server.on("listening", () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ listening: typeof address === "object" ? address?.port : address })}\n`);
});
