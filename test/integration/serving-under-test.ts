import assert from "node:assert/strict";
import { once } from "node:events";
import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { ServedLine } from "../../src/host/serving/relay.ts";
import { fixture, type HostSetup, type HostUnderTest, startHost } from "./host-under-test.ts";

export const credential = "a".repeat(43);

/** A real host that serves the fixture, or another component, and takes requests under `credential`. */
export const startServing = async (setup: Partial<HostSetup> = {}): Promise<HostUnderTest> => {
  const host = await startHost({
    component: fixture("serving.wasm"),
    ...setup,
    config: { serve: { address: "127.0.0.1", port: 0 }, ...setup.config },
  });
  assert.equal(await accept(host, 1, [credential]), 200);
  return host;
};

export const accept = async (host: HostUnderTest, version: number, credentials: readonly string[]): Promise<number> => {
  const document = host.signedByRoot({ kind: "hop", boot: host.boot, version, accept: credentials });
  return (await host.request("PUT", "/v1/hop", document)).status;
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly trailers: IncomingMessage["trailers"];
  readonly text: string;
  /** Whether the connection broke before the end. */
  readonly isCut: boolean;
}

export interface Asked {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly agent?: Agent;
}

export const open = (host: HostUnderTest, path: string, { method = "GET", headers, agent }: Asked = {}): ClientRequest =>
  httpRequest(`${host.serving}${path}`, { method, agent: agent ?? false, headers: { "ambit-hop": credential, ...headers } });

export const ask = async (host: HostUnderTest, path: string, asked: Asked = {}): Promise<Answer> => {
  const request = open(host, path, asked);
  request.end(asked.body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return read(response);
};

export const read = async (response: IncomingMessage): Promise<Answer> => {
  let text = "";
  let isCut = false;
  response.setEncoding("latin1");
  try {
    for await (const chunk of response) text += chunk;
  } catch {
    isCut = true;
  }
  const { statusCode = 0, headers, trailers } = response;
  return { status: statusCode, headers, trailers, text, isCut };
};

export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 15_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "it did not come to be");
    await new Promise((passed) => setTimeout(passed, 20));
  }
};

/** What the host's log says of requests, from the `from`th line on. */
export const servedLines = (host: HostUnderTest, from = 0): ServedLine[] =>
  host.lines.slice(from).flatMap((line) => {
    const { served } = JSON.parse(line) as { served?: ServedLine };
    return served ? [served] : [];
  });
