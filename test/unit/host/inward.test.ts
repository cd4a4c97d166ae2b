import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { Inward } from "../../../src/host/serving/inward.ts";
import { costOf, type ToServed, windowBytes } from "../../../src/host/serving/served-messages.ts";

test("a body in pieces of one byte is held back as soon as its pieces come to much, and goes on when they were taken", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[request]] = await Promise.all([
    once(server, "request") as Promise<[IncomingMessage]>,
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(10_000)}0\r\n\r\n`),
  ]);
  const { port1, port2 } = new MessageChannel();
  const inward = new Inward(port1, request);
  const most = Math.ceil(windowBytes / costOf(new Uint8Array(1)));
  let count = 0;
  const ended = new Promise<void>((end) => {
    port2.on("message", (message: ToServed) => {
      if (message.kind === "end") end();
      if (message.kind !== "bytes") return;
      count++;
      // The first are taken late, so that all that may be under way is.
      if (count === most) {
        assert.ok(request.isPaused());
        inward.taken(most * costOf(message.bytes));
      } else if (count > most) inward.taken(costOf(message.bytes));
    });
  });
  inward.start();
  await ended;
  assert.ok(most < 1000);
  assert.equal(count, 10_000);
  port1.close();
  socket.destroy();
  server.close();
});
