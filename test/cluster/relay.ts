import { connect, createServer, type Server, type Socket } from "node:net";

/** A server that passes every connection on to `to`, the path of a socket or `HOST:PORT`; a half that ends is ended on the other side. */
export const relay = (to: string): Server =>
  createServer({ allowHalfOpen: true }, (here) => {
    const there = dial(to);
    here.pipe(there).pipe(here);
    // Either end may be reset at any time; the other one learns it and nothing else is to be done.
    here.on("error", () => there.destroy()).on("close", () => there.destroy());
    there.on("error", () => here.destroy()).on("close", () => here.destroy());
  });

const dial = (to: string): Socket => {
  if (to.startsWith("/")) return connect({ path: to, allowHalfOpen: true });
  const colon = to.lastIndexOf(":");
  return connect({ host: to.slice(0, colon), port: Number(to.slice(colon + 1)), allowHalfOpen: true });
};
