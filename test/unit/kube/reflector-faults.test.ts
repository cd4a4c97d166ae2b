import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Transient } from "../../../src/api/errors.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { ListPage, QueryValue } from "../../../src/kube/client.ts";
import type { ClusterObject, ResourceType } from "../../../src/kube/object.ts";
import { Reflector } from "../../../src/kube/reflector.ts";
import { Store } from "../../../src/kube/store.ts";
import { ManualClock } from "./manual-clock.ts";

const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

interface Logged {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ClusterObject;
}

type Fault = "unreachable" | "busy" | "expired" | "internal" | "forbidden";

const faults: Record<Fault, () => Error> = {
  unreachable: () => new Transient("ApiUnreachable", "no route"),
  busy: () => new ApiError("TooManyRequests", "busy", { status: 429, retryAfterMs: 2000 }),
  expired: () => new ApiError("Expired", "too old", { status: 410 }),
  internal: () => new ApiError("InternalError", "oops", { status: 500 }),
  forbidden: () => new ApiError("Forbidden", "no", { status: 403 }),
};

/** A collection with its history, and watches on it, that fail as they are told to. Versions look like nothing that could be compared. */
class Collection {
  readonly objects = new Map<string, ClusterObject>();
  readonly failNext: Fault[] = [];
  readonly log: Logged[] = [];
  #version = 0;
  #uids = 0;
  #compacted = 0;
  readonly #watches = new Set<Stream>();

  change(name: string, what: "put" | "delete" | "recreate"): void {
    const known = this.objects.get(name);
    if (known !== undefined && what !== "put") this.#write("DELETED", known.metadata.uid ?? "", name);
    if (what === "delete") return;
    const isNew = known === undefined || what === "recreate";
    this.#write(isNew ? "ADDED" : "MODIFIED", isNew ? `uid-${++this.#uids}` : (known.metadata.uid ?? ""), name);
  }

  compact(): void {
    this.#compacted = this.#version;
  }

  /** What happens to the watches that are open. */
  disturb(how: "end" | "break" | "hang" | "halve" | "bookmark" | "error" | "garble"): void {
    for (const watch of [...this.#watches]) {
      if (how === "bookmark") watch.push(lineOf("BOOKMARK", { metadata: { resourceVersion: opaque(this.#version) } }));
      if (how === "error") watch.push(lineOf("ERROR", { code: 500, reason: "InternalError", message: "oops" }));
      if (how === "garble") watch.push("{}}\n");
      if (how === "halve") watch.push('{"type":"ADDED","object":{"meta');
      if (how === "end" || how === "halve") watch.end();
      if (how === "break") watch.end(new Error("reset"));
      if (how !== "bookmark") this.#watches.delete(watch);
    }
  }

  async listPage<T extends ClusterObject>(
    _: ResourceType,
    __: object,
    { limit, next }: { limit?: number; next?: string } = {},
  ): Promise<ListPage<T>> {
    await this.#admit();
    const [version = this.#version, from = 0] = next?.split(":").map(Number) ?? [];
    if (next !== undefined && version < this.#compacted) throw faults.expired();
    const objects = this.#stateAt(version);
    const to = limit === undefined ? objects.length : from + limit;
    return {
      items: objects.slice(from, to) as T[],
      resourceVersion: opaque(version),
      next: to < objects.length ? `${version}:${to}` : undefined,
    };
  }

  async watch(
    _: string,
    { resourceVersion }: Readonly<Record<string, QueryValue>>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    await this.#admit();
    const from = versionOf(String(resourceVersion));
    if (from < this.#compacted) throw faults.expired();
    const stream = new Stream(signal);
    for (const { version, type, object } of this.log) if (version > from) stream.push(lineOf(type, object));
    this.#watches.add(stream);
    return stream.read();
  }

  #write(type: Logged["type"], uid: string, name: string): void {
    const object = { metadata: { name, uid, resourceVersion: opaque(++this.#version) } };
    if (type === "DELETED") this.objects.delete(name);
    else this.objects.set(name, object);
    this.log.push({ version: this.#version, type, object });
    for (const watch of this.#watches) watch.push(lineOf(type, object));
  }

  #stateAt(version: number): ClusterObject[] {
    const state = new Map<string, ClusterObject>();
    for (const entry of this.log) {
      if (entry.version > version) break;
      if (entry.type === "DELETED") state.delete(entry.object.metadata.name);
      else state.set(entry.object.metadata.name, entry.object);
    }
    return [...state.values()];
  }

  async #admit(): Promise<void> {
    await Promise.resolve();
    const fault = this.failNext.shift();
    if (fault !== undefined) throw faults[fault]();
  }
}

class Stream {
  readonly #lines: Uint8Array[] = [];
  #ended: { readonly error?: Error } | undefined;
  #wake: () => void = () => {};

  constructor(signal: AbortSignal) {
    const end = () => this.end(new Error("aborted"));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  }

  push(line: string): void {
    if (!this.#ended) this.#lines.push(Buffer.from(line));
    this.#wake();
  }

  end(error?: Error): void {
    this.#ended ??= error === undefined ? {} : { error };
    this.#wake();
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else if (this.#ended?.error) throw this.#ended.error;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

const opaque = (version: number): string => `v${version.toString(3)}x`;
const versionOf = (text: string): number => Number.parseInt(text.slice(1, -1), 3);
const lineOf = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test("whatever goes wrong on the way, the store becomes what the server has, and no version is told out of order", async () => {
  const name = fc.constantFrom("a", "b", "c", "d", "e");
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ change: fc.constantFrom("put" as const, "put" as const, "delete" as const, "recreate" as const), name }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        disturb: fc.constantFrom(
          "end" as const,
          "break" as const,
          "hang" as const,
          "halve" as const,
          "bookmark" as const,
          "error" as const,
          "garble" as const,
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ fail: fc.constantFrom(...(Object.keys(faults) as Fault[])) }) },
    { weight: 1, arbitrary: fc.constant({ compact: true }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.constantFrom(0, 600, 5000, 200_000) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const server = new Collection();
      const store = new Store<ClusterObject>();
      const told: string[] = [];
      const held = new Map<string, string>();
      store.subscribe(({ type, object: { metadata } }) => {
        if (type === "added") assert.ok(!held.has(metadata.name), "an object is added once");
        else assert.equal(held.get(metadata.name), metadata.uid, "only what is there changes or goes");
        if (type === "deleted") held.delete(metadata.name);
        else held.set(metadata.name, metadata.uid ?? "");
        if (type !== "deleted") told.push(metadata.resourceVersion ?? "");
      });
      const end = new AbortController();
      const timing = {
        pageSize: 2,
        watchSeconds: 300,
        idleMs: 150_000,
        lineBytes: 1000,
        firstBackOffMs: 500,
        longestBackOffMs: 15_000,
        calmMs: 120_000,
      };
      const running = new Reflector({ client: server, type: configMaps, sink: store, clock, random: () => 0.5, timing }).run(end.signal);
      for (const now of steps) {
        if ("change" in now) server.change(now.name, now.change);
        if ("disturb" in now) server.disturb(now.disturb);
        if ("fail" in now) server.failNext.push(now.fail);
        if ("compact" in now) server.compact();
        if ("pass" in now) {
          await settle();
          clock.pass(now.pass);
        }
      }
      const same = () => {
        const stored = store.list().map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`);
        const there = [...server.objects.values()].map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`);
        return stored.sort().join() === there.sort().join();
      };
      for (let round = 0; round < 100 && !(same() && server.failNext.length === 0); round++) {
        await settle();
        clock.pass(30_000);
      }
      assert.ok(same(), "the store is not what the server has");
      const versions = Map.groupBy(told, (version) => server.log.find((entry) => opaque(entry.version) === version)?.object.metadata.name);
      for (const [, ofOne] of versions) {
        const numbers = ofOne.map(versionOf);
        assert.deepEqual(
          numbers,
          [...numbers].sort((a, b) => a - b),
        );
      }
      end.abort();
      await running;
    }),
    { numRuns: 150 },
  );
});
