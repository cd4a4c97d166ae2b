import { connect } from "node:net";

/** Opens connections that say nothing, from these addresses in turn, a hundred at a time, and keeps what it may until its parent goes. */
export interface FloodOrder {
  readonly port: number;
  readonly addresses: readonly string[];
  readonly connections: number;
}

const atOnce = 100;

const flood = async ({ port, addresses, connections }: FloodOrder): Promise<void> => {
  for (let opened = 0; opened < connections; opened += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, (_, index) => opening(port, addresses[(opened + index) % addresses.length] ?? "127.0.0.1")),
    );
  }
  process.send?.("flooded");
};

/** Settled once the server took the connection or closed it. */
const opening = (port: number, localAddress: string): Promise<void> =>
  new Promise((resolve) => {
    connect({ port, host: "127.0.0.1", localAddress })
      .once("connect", () => resolve())
      .once("close", () => resolve())
      .on("error", () => resolve())
      .resume();
  });

if (import.meta.main) {
  process.once("message", (order: FloodOrder) => void flood(order));
  process.once("disconnect", () => process.exit(0));
}
