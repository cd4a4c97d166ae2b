import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { parseJson } from "../../src/api/json.ts";
import { type UntypedTool, untypedInterface } from "../../src/api/untyped.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { readListing } from "../../src/grants/listing.ts";
import { fixture, type HostUnderTest, startHost } from "./host-under-test.ts";

interface Told {
  readonly digest: string | null;
  readonly listing: unknown;
  readonly fault: { readonly code: string; readonly message: string } | null;
}

/** Where the tools really are: a server that a component speaks to over HTTP. */
class FarSide {
  tools = [{ name: "ask", description: "Ask it." }];
  /** What a call gets; null ends the connection without an answer. */
  answer: ((body: string) => { status: number; text: string }) | null = (body) => ({ status: 200, text: `heard ${body}` });
  lists = 0;
  watches = 0;
  readonly #waiting: ServerResponse[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(port = 0): Promise<number> {
    await new Promise<void>((listening) => this.#server.listen(port, "127.0.0.1", listening));
    return (this.#server.address() as AddressInfo).port;
  }

  /** Answers those who watch. */
  say(what: string): void {
    for (const response of this.#waiting.splice(0)) response.end(what);
  }

  async close(): Promise<void> {
    await new Promise<void>((closed) => {
      this.#server.close(() => closed());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    if (request.url === "/tools") {
      this.lists++;
      response.end(JSON.stringify(this.tools));
    } else if (request.url === "/changes") {
      this.watches++;
      this.#waiting.push(response);
    } else if (this.answer === null) {
      request.socket.destroy();
    } else {
      const { status, text } = this.answer(body);
      response.writeHead(status).end(text);
    }
  }
}

const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 40_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "it comes to hold");
    await new Promise((passed) => setTimeout(passed, 50));
  }
};

describe("a host whose component asks a server for its tools", () => {
  const farSide = new FarSide();
  let host: HostUnderTest;
  before(async () => {
    const port = await farSide.listen();
    host = await startHost({
      component: fixture("faraway.wasm"),
      config: {
        allowedHosts: ["http://far.test"],
        hostOverrides: { "far.test:80": `127.0.0.1:${port}` },
        environment: { FAR_SIDE: "far.test" },
        callsPerInstance: 100,
      },
    });
  });
  after(async () => {
    await host.stop();
    await farSide.close();
  });

  const ask = async (known: string | null = null, waitMs = 20_000): Promise<Told> => {
    const request = { kind: "listing", boot: host.boot, known, waitMs };
    return (await host.request("POST", "/v1/listing", host.signedByRoot(request))).body as Told;
  };
  const toolsOf = ({ listing }: Told): readonly UntypedTool[] => readListing(parseJson(JSON.stringify(listing))).tools;
  const call = (tool: UntypedTool, args: object) => {
    const body = JSON.stringify(args);
    const change = { definition: definitionDigest(tool) };
    return host.request("POST", "/v1/call", body, {
      "ambit-ticket": host.ticketFor(body, { interface: untypedInterface, function: tool.name }, change),
    });
  };
  const theTool = async (): Promise<UntypedTool> => {
    const [tool] = toolsOf(await ask());
    assert.ok(tool);
    return tool;
  };

  it("lists and calls while a watch waits at the server", async () => {
    const tool = await theTool();
    await until(() => farSide.watches === 1);
    const { body } = await call(tool, { a: 1 });
    assert.deepEqual([body.outcome, body.text], ["ok", 'heard {"a":1}']);
  });

  it("hears of a change by the watch, which goes on in the same instance", async () => {
    const { digest } = await ask();
    farSide.tools = [{ name: "ask", description: "Ask it nicely." }];
    farSide.say("changed");
    const told = await ask(digest);
    assert.equal(toolsOf(told)[0]?.description, "Ask it nicely.");
    await until(() => farSide.watches === 2);
  });

  it("tells what failed before it was sent from what was lost after", async () => {
    const tool = await theTool();
    const { answer } = farSide;
    farSide.answer = null;
    const lost = (await call(tool, {})).body;
    farSide.answer = answer;
    assert.deepEqual([lost.outcome, lost.code, lost.ran], ["failed", "FarSideLost", true]);
  });

  it("passes an error of the server on as the tool's", async () => {
    const tool = await theTool();
    const { answer } = farSide;
    farSide.answer = () => ({ status: 500, text: "no" });
    const { body } = await call(tool, {});
    farSide.answer = answer;
    assert.deepEqual([body.outcome, body.text], ["tool-error", "no"]);
  });

  it("serves a kept instance for more requests than one call may send", async () => {
    const tool = await theTool();
    for (let count = 0; count < 300; count++) assert.equal((await call(tool, {})).body.outcome, "ok");
  });

  it("begins a watch anew that failed, and lists then, since it may have missed something", async () => {
    await until(() => farSide.watches >= 2);
    const { watches, lists } = farSide;
    farSide.say("the server restarts");
    await until(() => farSide.watches > watches && farSide.lists > lists);
    assert.ok(host.lines.some((line) => line.includes("the server restarts")));
  });

  it("ends a watch that computes instead of waiting, and goes on serving", { timeout: 60_000 }, async () => {
    const { watches } = farSide;
    farSide.say("spin");
    assert.equal((await call(await theTool(), {})).body.outcome, "ok");
    await until(() => farSide.watches > watches);
    assert.equal((await call(await theTool(), {})).body.outcome, "ok");
  });
});
