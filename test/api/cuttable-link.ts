import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a port of loopback that can be cut, as a cable can: connections break off, and new ones do too until it is mended. */
export interface CuttableLink extends AsyncDisposable {
  readonly port: number;
  cut(): void;
  mend(): void;
}

export const cuttableLink = async (targetPort: number): Promise<CuttableLink> => {
  const open = new Set<Socket>();
  let isCut = false;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    // Either end may break off at any time; the other hears it by the closing below.
    socket.on("error", () => socket.destroy());
  };
  const server = createServer((near) => {
    keep(near);
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect(targetPort, "127.0.0.1");
    keep(far);
    near.pipe(far).pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const breakAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      breakAll();
    },
    mend: () => {
      isCut = false;
    },
    [Symbol.asyncDispose]: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
