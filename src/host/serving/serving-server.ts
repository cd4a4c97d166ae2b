import { createServer, type Server } from "node:http";
import { hopHeader } from "../../api/host.ts";
import type { ServeHttp } from "../server.ts";
import type { ToolHost } from "../tool-host.ts";
import { isAccepted } from "./credentials.ts";
import { refuse, relay } from "./relay.ts";

/** More than a bridge's hosts keep; each takes some memory, whoever opened it. */
const maxConnections = 256;

/** Largest head of a request, in bytes. */
const maxHeaderSize = 16 * 1024;

/** What an MCP server's bridge speaks to. Whoever does not show the credential gets 401, and nothing of what they send is looked at. */
export const servingServer = (host: ToolHost, serve: ServeHttp = createServer): Server => {
  const server = serve(
    { keepAliveTimeout: 60_000, requestTimeout: 0, headersTimeout: 10_000, maxHeaderSize, noDelay: true },
    (request, response) => {
      response.on("error", () => undefined);
      if (!isAccepted(request.headers[hopHeader], host.acceptedHops)) return refuse(response, 401);
      if (host.missing.length > 0) return refuse(response, 503);
      relay(request, response, { run: (call) => host.serve(call), log: (text) => host.say(text) }).catch((error: unknown) => {
        host.say(`a request was not served: ${String(error)}`);
        if (response.headersSent) response.destroy();
        else refuse(response, 500);
      });
    },
  );
  server.maxConnections = maxConnections;
  return server;
};
