import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { messageOf } from "../../api/errors.ts";
import { hopHeader } from "../../api/host.ts";
import type { ServeHttp } from "../server.ts";
import type { ToolHost } from "../tool-host.ts";
import { isAccepted } from "./credentials.ts";
import { drop } from "./inward.ts";
import { refuse } from "./outward.ts";
import { type RelayDeps, relay } from "./relay.ts";

/** More than a bridge's hosts keep; each takes some memory, whoever opened it. */
const maxConnections = 256;

/** Largest head of a request, in bytes. */
const maxHeaderSize = 16 * 1024;

/** What an MCP server's bridge speaks to. Whoever does not show the credential gets 401, and nothing of what they send is looked at. */
export const servingServer = (host: ToolHost, deps: Omit<RelayDeps, "run">, serve: ServeHttp = createServer): Server => {
  const isKnown = (request: IncomingMessage): boolean => isAccepted(request.headers[hopHeader], host.acceptedHops);
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    response.on("error", () => undefined);
    if (!isKnown(request)) {
      refuse(response, 401);
      return;
    }
    if (host.missing.length > 0) {
      refuse(response, 503);
      drop(request);
      return;
    }
    relay(request, response, { run: (call, signal) => host.serve(call, signal), ...deps }).catch((error: unknown) => {
      const [status, fault] = [response.headersSent ? response.statusCode : 500, `Internal: ${messageOf(error)}`];
      deps.served({ method: request.method ?? "", status, queueMs: 0, runMs: 0, receivedBytes: 0, sentBytes: 0, fault });
      if (response.headersSent) response.destroy();
      else refuse(response, 500);
    });
  };
  const server = serve(
    {
      keepAliveTimeout: 60_000,
      // A body may come as slowly as the deadline of what reads it allows.
      requestTimeout: 0,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize,
      noDelay: true,
    },
    take,
  );
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (isKnown(request)) response.writeContinue();
    take(request, response);
  });
  server.maxConnections = maxConnections;
  return server;
};
