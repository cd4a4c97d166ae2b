import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A small web site on loopback for the `fetch` example: one page, one redirect within the site, one to another host. */
export const startDocsStandIn = async (): Promise<{ readonly port: number; readonly close: () => Promise<void> }> => {
  const server = createServer((request, response) => {
    switch (request.url) {
      case "/":
        response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
        response.end("<!doctype html><title>Retries</title><h1>Retries</h1><p>The client retries three times, with jitter.</p>");
        return;
      case "/old":
        response.writeHead(302, { location: "/" }).end();
        return;
      case "/elsewhere":
        response.writeHead(302, { location: "http://evil.test/" }).end();
        return;
      default:
        response.writeHead(404, { "content-type": "text/plain" }).end("no such page");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
};
