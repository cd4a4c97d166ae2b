import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface UnreadLimits {
  /** Bytes of answers, over all callers, that were written and not taken yet. */
  readonly unreadBytes: number;
  /** Time that a caller has to take an answer. */
  readonly unreadMs: number;
}

/** Bounds what callers leave unread of their answers: who asks and doesn't read must not fill the memory. Only a caller's own connection is closed for it. */
export class UnreadAnswers {
  readonly #limits: UnreadLimits;
  /** What is to be done once an answer was taken or its connection has ended. */
  readonly #releases = new WeakMap<Socket, Set<() => void>>();
  #held = 0;

  constructor(limits: UnreadLimits) {
    this.#limits = limits;
  }

  /** Looks after an answer that was written as a whole; most are with the operating system by then, and cost nothing. */
  written({ socket }: IncomingMessage, response: ServerResponse): void {
    const bytes = response.writableLength;
    if (bytes === 0 || !response.writableEnded || socket.destroyed) return;
    this.#held += bytes;
    const releases = this.#releasesOf(socket);
    const late = setTimeout(() => socket.destroy(), this.#limits.unreadMs);
    const release = (): void => {
      if (!releases.delete(release)) return;
      this.#held -= bytes;
      clearTimeout(late);
    };
    releases.add(release);
    response.once("finish", release);
    if (this.#held > this.#limits.unreadBytes) socket.destroy();
  }

  /** An answer that waits behind another on its connection hears of no end itself, so the connection is listened to. */
  #releasesOf(socket: Socket): Set<() => void> {
    const known = this.#releases.get(socket);
    if (known) return known;
    const releases = new Set<() => void>();
    this.#releases.set(socket, releases);
    socket.once("close", () => {
      for (const release of [...releases]) release();
    });
    return releases;
  }
}
