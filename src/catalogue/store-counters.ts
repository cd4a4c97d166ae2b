import { createHash } from "node:crypto";
import { createClient } from "@redis/client";
import { messageOf, Transient } from "../api/errors.ts";
import { bucketMs } from "../grants/sliding-window.ts";
import type { Charge, Counters, Receipt, Taken } from "./counters.ts";

/** Where replicas count together: Valkey, or Redis from version 6. */
export interface CounterStore {
  /** `redis://host:port`, or `rediss://` with TLS; no user and no password, which would count instead of those below. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  /** Certificates (PEM) of who may sign the store's; the system's authorities otherwise. */
  readonly ca?: string;
}

/** A call waits no longer to be counted: a store takes a fraction of a millisecond. */
const defaultWaitMs = 500;

/** After so many answers in a row that didn't come, the connection is made anew: one that a firewall forgot says nothing of it for minutes. */
const mostUnanswered = 5;

/** So long a connection may take until it can be used; one that goes on is given up at the next call. */
const longestStartMs = 5_000;

/** Commands that wait for their answer; each is of a call that waits. */
const mostWaiting = 10_000;

/**
 * For each key: the window, the length of a bucket (src/grants/sliding-window.ts), the limit, what must be free, what is added. One run is one step of the store, which does nothing
 * else meanwhile, and its clock counts, so that replicas' clocks may differ. Answers 1 and the bucket of each key; or 0, the place of the first without room, and milliseconds.
 */
const takeScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i, key in ipairs(KEYS) do
  local window, width, max, needs = tonumber(ARGV[i * 5 - 4]), tonumber(ARGV[i * 5 - 3]), tonumber(ARGV[i * 5 - 2]), tonumber(ARGV[i * 5 - 1])
  local oldest = math.floor((now - window) / width)
  local fields = redis.call('HGETALL', key)
  local used, held = 0, {}
  for j = 1, #fields, 2 do
    local bucket, amount = tonumber(fields[j]), tonumber(fields[j + 1])
    if bucket < oldest then
      redis.call('HDEL', key, fields[j])
    else
      used = used + amount
      held[#held + 1] = {bucket, amount}
    end
  end
  if used + needs > max then
    table.sort(held, function(a, b) return a[1] < b[1] end)
    local wait = window
    for _, one in ipairs(held) do
      used = used - one[2]
      if used + needs <= max then
        wait = (one[1] + 1) * width + window - now
        break
      end
    end
    return {0, i - 1, wait}
  end
end
local answer = {1}
for i, key in ipairs(KEYS) do
  local window, width, adds = tonumber(ARGV[i * 5 - 4]), tonumber(ARGV[i * 5 - 3]), tonumber(ARGV[i * 5])
  local bucket = math.floor(now / width)
  if adds > 0 then
    redis.call('HINCRBY', key, bucket, adds)
    redis.call('PEXPIRE', key, window + 2 * width)
  end
  answer[i + 1] = bucket
end
return answer
`;

/** For each key: the bucket and what was taken there. What has expired is not made again. */
const giveBackScript = `
for i, key in ipairs(KEYS) do
  if redis.call('HEXISTS', key, ARGV[i * 2 - 1]) == 1 then redis.call('HINCRBY', key, ARGV[i * 2 - 1], -ARGV[i * 2]) end
end
return 1
`;

interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** SHA-1 is the name that the store gives a script. */
const scriptOf = (text: string): Script => ({ text, sha1: createHash("sha1").update(text).digest("hex") });
const scripts = { take: scriptOf(takeScript), giveBack: scriptOf(giveBackScript) };

/**
 * Counts in a store that all replicas share, so that limits hold exactly however many there are. A store that can't be reached, or doesn't answer in time, is
 * `CountersUnavailable`: what it would have said is not guessed.
 */
export class StoreCounters implements Counters {
  readonly #store: CounterStore;
  readonly #report: (fault: unknown) => void;
  readonly #waitMs: number;
  #client: Client;
  #unanswered = 0;
  #startedAt = performance.now();

  /** Connects, again and again, until it is closed. */
  constructor(store: CounterStore, report: (fault: unknown) => void, waitMs = defaultWaitMs) {
    this.#store = store;
    this.#report = report;
    this.#waitMs = waitMs;
    this.#client = this.#connect();
  }

  async take(charges: readonly Charge[]): Promise<Taken> {
    const numbers = charges.flatMap(({ limit: { max, windowMs }, needs, adds }) => [windowMs, bucketMs(windowMs), max, needs, adds]);
    const answer = await this.#run(scripts.take, charges, numbers);
    if (!Array.isArray(answer) || !answer.every((item) => typeof item === "number")) throw unavailable("it answered in another shape");
    const [taken, ...rest] = answer;
    if (taken !== 1) return { taken: false, index: rest[0] ?? 0, retryAfterMs: rest[1] ?? 0 };
    const receipt = charges.map(({ key, limit: { windowMs }, adds }, index) => ({ key, windowMs, bucket: rest[index] ?? 0, amount: adds }));
    return { taken: true, receipt: receipt.filter(({ amount }) => amount > 0) };
  }

  async giveBack(receipt: Receipt): Promise<void> {
    const numbers = receipt.flatMap(({ bucket, amount }) => [bucket, amount]);
    await this.#run(scripts.giveBack, receipt, numbers);
  }

  close(): void {
    if (this.#client.isOpen) this.#client.destroy();
  }

  async #run(script: Script, counters: readonly { readonly key: string }[], numbers: readonly number[]): Promise<unknown> {
    const client = this.#client;
    const args = [String(counters.length), ...counters.map(({ key }) => key), ...numbers.map(String)];
    try {
      const answer = await within(this.#waitMs, evaluate(client, script, args));
      this.#unanswered = 0;
      return answer;
    } catch (thrown) {
      if (thrown instanceof Unanswered) this.#unanswered++;
      if (client === this.#client && this.#isStuck()) this.#reconnect();
      throw unavailable(messageOf(thrown), thrown);
    }
  }

  /** Whether nothing is to be expected of the connection, though nobody said that it is gone. */
  #isStuck(): boolean {
    if (this.#client.isReady) return this.#unanswered >= mostUnanswered;
    return performance.now() - this.#startedAt > longestStartMs;
  }

  #reconnect(): void {
    this.#unanswered = 0;
    this.#startedAt = performance.now();
    this.close();
    this.#client = this.#connect();
  }

  #connect(): Client {
    return connectedTo(this.#store, this.#waitMs, this.#report);
  }
}

const connectedTo = ({ url, username, password, ca }: CounterStore, waitMs: number, report: (fault: unknown) => void) => {
  const client = createClient({
    url,
    name: "ambit-catalogue",
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    disableOfflineQueue: true,
    commandsQueueMaxLength: mostWaiting,
    maintNotifications: "disabled",
    disableClientInfo: true,
    commandOptions: { timeout: waitMs },
    socket: {
      ...(url.startsWith("rediss:") ? { tls: true, ...(ca === undefined ? {} : { ca }) } : {}),
      connectTimeout: 2_000,
      reconnectStrategy: (retries) => Math.min(2_000, 50 * 2 ** Math.min(retries, 6)),
    },
  });
  client.on("error", (error) => report(unavailable(messageOf(error), error)));
  // What keeps it from connecting is told as an error, and tried again.
  client.connect().catch(() => undefined);
  return client;
};

type Client = ReturnType<typeof connectedTo>;

/** By the script's name, and with its text where the store has not seen it since it started. */
const evaluate = async (client: Client, { text, sha1 }: Script, args: readonly string[]): Promise<unknown> => {
  try {
    return await client.sendCommand(["EVALSHA", sha1, ...args]);
  } catch (thrown) {
    if (!messageOf(thrown).startsWith("NOSCRIPT")) throw thrown;
    return client.sendCommand(["EVAL", text, ...args]);
  }
};

class Unanswered extends Error {}

const within = async <T>(ms: number, promise: Promise<T>): Promise<T> => {
  let alarm: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    alarm = setTimeout(() => reject(new Unanswered(`it did not answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(alarm);
  }
};

const unavailable = (why: string, cause?: unknown): Transient =>
  new Transient("CountersUnavailable", `the store of counters can't be used: ${why}`, { cause });
