import { request as httpsRequest, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import { KubeConfig } from "@kubernetes/client-node";

/** What an API server answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** One request to an API server. `path` may have a query; a body that is no string is sent as JSON. */
export type Request = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

/** How long an API server may think about one request. */
const timeoutMs = 30_000;

/** Requests as the current user of that kubeconfig: for suites and for looking whether a server is up, with nothing of Ambit's in between. */
export const requestsOf = (kubeconfig: string): Request => {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error(`${kubeconfig} names no current cluster`);
  return async (method, path, body, contentType = "application/json") => {
    const options: RequestOptions = { method, timeout: timeoutMs, headers: { "content-type": contentType } };
    await config.applyToHTTPSOptions(options);
    const url = `${server.replace(/\/$/, "")}${path}`;
    return new Promise((resolve, reject) => {
      const sent = httpsRequest(url, options, (response) => {
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
      });
      sent.on("timeout", () => sent.destroy(new Error(`${method} ${url}: no answer within ${timeoutMs} ms`)));
      sent.on("error", reject);
      sent.end(body === undefined || typeof body === "string" ? body : JSON.stringify(body));
    });
  };
};

/** Whether a server is there and says of itself that it is ready. Any other failure than not being reached is thrown. */
export const isReady = async (request: Request): Promise<boolean> => {
  try {
    return (await request("GET", "/readyz")).status === 200;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && ["ECONNREFUSED", "ECONNRESET"].includes(String(thrown.code))) return false;
    throw thrown;
  }
};
