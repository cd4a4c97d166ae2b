import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Stalled } from "../api/errors.ts";
import type { ScrapedMetrics } from "./prometheus.ts";

export interface TelemetryPlace {
  readonly address: string;
  /** 0 takes a free one. */
  readonly port: number;
}

export interface TelemetryParts {
  readonly metrics: ScrapedMetrics;
  /** Whether this replica can do its work, as its pod's readiness. That it answers at all is its liveness. */
  readonly isReady: () => boolean;
  /** Hears why a scrape failed. */
  readonly report: (fault: unknown) => void;
}

export interface TelemetryServer {
  readonly address: AddressInfo;
  close(): Promise<void>;
}

/** Of scrapers and probes together; there are a handful. */
const mostConnections = 128;

/**
 * Serves metrics and probes in plain HTTP on a port of their own, for Prometheus and the kubelet: `/metrics`, `/healthz`, `/readyz`. Nothing on it is secret from who may scrape, and it takes
 * no input. Throws `Stalled` `AddressInUse`.
 */
export const serveTelemetry = async (place: TelemetryPlace, parts: TelemetryParts): Promise<TelemetryServer> => {
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 5_000, maxHeaderSize: 8 * 1024 }, (request, response) => {
    answer(parts, request, response).catch((fault: unknown) => {
      parts.report(fault);
      send(response, 500, plainText, "failed; the log says why\n");
    });
  });
  server.maxConnections = mostConnections;
  server.listen(place.port, place.address);
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    const where = `${place.address} port ${place.port}`;
    throw new Stalled("AddressInUse", `another process listens at ${where}, which metrics were to be served on`, { cause: error });
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a listening TCP server has an address and a port");
  return {
    address,
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
};

const answer = async ({ metrics, isReady }: TelemetryParts, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const [path] = (request.url ?? "").split("?", 1);
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return send(response, 405, plainText, "use GET\n");
  }
  if (isRebound(request)) return send(response, 421, plainText, "ask for an address, or localhost\n");
  if (path === "/metrics") return send(response, 200, metrics.contentType, await metrics.text());
  if (path === "/healthz") return send(response, 200, plainText, "ok\n");
  if (path === "/readyz") return isReady() ? send(response, 200, plainText, "ready\n") : send(response, 503, plainText, "starting\n");
  send(response, 404, plainText, "there are /metrics, /healthz and /readyz\n");
};

/** On loopback a web page could have a name of its own resolve to us; who is on this machine needs none. */
const isRebound = ({ socket: { localAddress = "" }, headers: { host = "" } }: IncomingMessage): boolean =>
  /^(127\.|::1$|::ffff:127\.)/.test(localAddress) && !/^(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?$/i.test(host);

const plainText = "text/plain; charset=utf-8";

const send = (response: ServerResponse, status: number, contentType: string, body: string): void => {
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  });
  response.end(body);
};
