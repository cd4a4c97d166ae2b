import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { UnreadAnswers } from "../../../src/catalogue/unread-answers.ts";

class Connection extends EventEmitter {
  destroyed = false;

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

const answering = (unread: UnreadAnswers, socket: Connection, writableLength: number, writableEnded = true): EventEmitter => {
  const response = Object.assign(new EventEmitter(), { writableLength, writableEnded });
  unread.written({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
};

test("beyond what all may leave unread, the connection is closed, and what was taken or dropped counts no more", () => {
  const unread = new UnreadAnswers({ unreadBytes: 100, unreadMs: 60_000 });
  const [first, second, third] = [new Connection(), new Connection(), new Connection()];
  const taken = answering(unread, first, 60);
  answering(unread, second, 60);
  assert.deepEqual([first.destroyed, second.destroyed], [false, true]);
  taken.emit("finish");
  answering(unread, third, 90);
  assert.equal(third.destroyed, false);
  third.destroy();
});

test("an answer that nobody takes in its time closes its connection; a stream and one that was taken don't", async () => {
  const unread = new UnreadAnswers({ unreadBytes: 100, unreadMs: 20 });
  const [late, stream, quick] = [new Connection(), new Connection(), new Connection()];
  answering(unread, stream, 10, false);
  answering(unread, quick, 0);
  const closed = once(late, "close");
  answering(unread, late, 10);
  await closed;
  assert.deepEqual([late.destroyed, stream.destroyed, quick.destroyed], [true, false, false]);
});
