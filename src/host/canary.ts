import { connect } from "node:net";
import type { CanaryAnswer } from "../api/host.ts";

/** What drops packets lets a connection hang; what refuses them answers at once. */
const connectMs = 1_500;

/**
 * Tries to connect to a place that this pod must not reach, and says whether it could. Nothing is sent. A firewall that refuses looks like a place where nobody listens, so the place must
 * be one where somebody does.
 */
export const tryCanary = ({ address, port }: { readonly address: string; readonly port: number }): Promise<CanaryAnswer> =>
  new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: connectMs });
    const answer = (reached: boolean, how: string): void => {
      resolve({ reached, how });
      socket.destroy();
    };
    socket.once("connect", () => answer(true, "connected"));
    socket.once("timeout", () => answer(false, "ETIMEDOUT"));
    socket.on("error", (error: NodeJS.ErrnoException) => answer(false, error.code ?? "failed"));
  });
