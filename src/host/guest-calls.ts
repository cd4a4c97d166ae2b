import { Invalid } from "../api/errors.ts";
import type { HostLimits, HostUse } from "../api/host.ts";
import { incomingHandlerExport } from "../api/http-server.ts";
import { compactJson, type JsonObject } from "../api/json.ts";
import { changesExport, untypedExport } from "../api/untyped.ts";
import type { ComponentInterface, WitFunction } from "../api/wit.ts";
import { parseArguments } from "../translate/arguments.ts";
import { isComponentError, resultOf, type Settled, type ToolResult } from "../translate/result.ts";
import { toComponentValues } from "../translate/to-component.ts";
import type { MemoryPages } from "./core-module.ts";
import { type Failure, failureOf, failures } from "./failure.ts";
import { GarbageGauge } from "./garbage-gauge.ts";
import { MemoryShelf } from "./memory-shelf.ts";
import type { ServedCall } from "./serving/served-messages.ts";
import { type Instantiate, ToolInstance } from "./tool-instance.ts";
import { callReply, newsReply, pageReply, type Returned } from "./untyped-calls.ts";
import { guestSuspends } from "./wasi/provided.ts";
import type { GuestCall, WorkerReply } from "./worker-protocol.ts";

/** What one instance of the component is given to import, and how that ends. */
export interface GuestImports {
  readonly imports: object;
  /** Starts counting anew what one call may use up. */
  renew(): void;
  /** What `handle` of `wasi:http/incoming-handler` gets for a request. */
  served(call: ServedCall, responseBytes: number): Served;
  /** What the call that began at `since`, by `performance.now()`, has used up; null where that is nothing. */
  useSince(since: number): HostUse | null;
  /** Whether what it was given is what an instance made now would get. */
  isCurrent(): boolean;
  /** Ends what the instance still holds: sockets, files. */
  dispose(): void;
}

/** The parameters of one request, and what ends it. */
export interface Served extends Disposable {
  readonly parameters: readonly [request: object, responseOut: object];
}

export interface GuestDeps {
  readonly instantiate: Instantiate;
  readonly modules: ReadonlyMap<string, WebAssembly.Module>;
  readonly memories: ReadonlyMap<string, MemoryPages>;
  readonly component: ComponentInterface;
  readonly limits: HostLimits;
  readonly callsPerInstance: number;
  readonly makeImports: () => GuestImports;
  /** `all`: gives back to the system what can be, however long it takes. */
  readonly collectGarbage: (all: boolean) => void;
  /** What the process has of the machine's memory. */
  readonly residentBytes: () => number;
}

interface LiveInstance {
  readonly tool: ToolInstance;
  readonly held: GuestImports;
}

/** Lifting is bounded above what a result may be, since the exact bound is judged on its text: elements weigh more in memory than in JSON. */
const liftingLimit = (resultBytes: number): number => 2 * resultBytes + 64 * 1024;

/** Lifting one page of tools: definitions are text, and the whole list is bounded by who asks for it. */
const pageLiftingLimit = 16 * 1024 * 1024;

/** What an instance leaves besides its memory: tables, functions, and jco's own state. Measured: 100 to 300 KB. */
const instanceBytes = 512 * 1024;

/**
 * Runs one call at a time in an instance that was made before the call came. An instance that trapped, or that has served its number of calls, is never
 * used again.
 */
export class GuestCalls {
  readonly #deps: GuestDeps;
  readonly #functions: ReadonlyMap<string, WitFunction>;
  readonly #ready: LiveInstance[] = [];
  readonly #shelf: MemoryShelf<WebAssembly.Module>;
  /**
   * Whether an instance's code may go on after its call returned: it awaits an import, or is asynchronous by itself. Then its memory is never another's.
   */
  readonly #mayGoOn: boolean;
  /** What ended instances had since the last collection. */
  readonly #garbage: GarbageGauge;

  constructor(deps: GuestDeps) {
    this.#deps = deps;
    this.#garbage = new GarbageGauge(deps.residentBytes);
    this.#shelf = new MemoryShelf(wantedByModule(deps));
    this.#mayGoOn = deps.component.isAsynchronous || guestSuspends(deps.component.imports);
    const typed = deps.component.functions.filter(({ interface: id }) => !id?.startsWith("ambit:tool/"));
    this.#functions = new Map(typed.map((fn) => [functionKey(fn.interface, fn.name), fn]));
  }

  /** Makes instances until `count` are ready. Throws what instantiation throws: the component's own start may trap. */
  prepare(count: number): void {
    while (this.#ready.length < count) this.#ready.push(this.#make());
  }

  /** Why `prepare` threw. */
  startFailure(error: unknown): Failure {
    const { memoryBytes, resultBytes } = this.#deps.limits;
    return failureOf(error, { usedBytes: 0, capBytes: memoryBytes }, resultBytes);
  }

  /** Frees the memory of ended instances now where it has come to much: V8 would wait for a pressure that a pod may not survive. */
  collect(): void {
    if (!this.#garbage.isDue()) return;
    this.#deps.collectGarbage(false);
    this.#garbage.collected();
  }

  /** The same for whatever there is, when no call is expected soon. */
  collectAll(): void {
    if (this.#garbage.isEmpty) return;
    this.#deps.collectGarbage(true);
    this.#garbage.collected();
  }

  run(call: GuestCall): Promise<WorkerReply> {
    const { component, limits } = this.#deps;
    switch (call.kind) {
      case "call":
        return this.#runTyped(call);
      case "call-tool":
        return this.#runIn(
          { interface: untypedExport(component), name: "call-tool" },
          [call.name, call.arguments, call.inputSchema],
          (settled) => callReply(returnedBy(settled), limits.resultBytes),
        );
      case "list-tools":
        return this.#runIn(
          { interface: untypedExport(component), name: "list-tools" },
          [call.cursor ?? undefined],
          (settled) => pageReply(returnedBy(settled)),
          pageLiftingLimit,
        );
      case "serve":
        return this.#serve(call);
      case "watch":
        return this.#runIn({ interface: changesExport(component), name: "watch" }, [], (settled) => newsReply(returnedBy(settled)));
    }
  }

  async #runTyped(call: Extract<GuestCall, { kind: "call" }>): Promise<WorkerReply> {
    const fn = this.#functions.get(functionKey(call.interface, call.function));
    if (fn === undefined) return refused("FunctionUnknown", `the component exports no function ${call.function} there`);
    let parameters: unknown[];
    try {
      parameters = toComponentValues(fn, parseArguments(call.arguments));
    } catch (error) {
      if (error instanceof Invalid) return refused(error.code, error.message);
      throw error;
    }
    const { resultBytes } = this.#deps.limits;
    return this.#runIn(fn, parameters, (settled) => ({ kind: "answer", json: replyJson(resultOf(fn, settled, resultBytes)) }));
  }

  async #serve(call: ServedCall): Promise<WorkerReply> {
    let served: Served | undefined;
    const parametersFor = ({ held }: LiveInstance): readonly unknown[] => {
      served = held.served(call, this.#deps.limits.resultBytes);
      return served.parameters;
    };
    const fn = { interface: incomingHandlerExport(this.#deps.component), name: "handle" };
    const reply = await this.#runIn(fn, parametersFor, (settled) => {
      returnedBy(settled);
      served?.[Symbol.dispose]();
      return { kind: "served" };
    });
    // Where the guest trapped, the same is said of a response that it left open.
    served?.[Symbol.dispose]();
    call.port.close();
    return reply;
  }

  /** `replyTo` throws what the guest threw that is no result of its, and what of its result can't be given. */
  async #runIn(
    fn: Pick<WitFunction, "interface" | "name">,
    parameters: readonly unknown[] | ((instance: LiveInstance) => readonly unknown[]),
    replyTo: (settled: Settled) => WorkerReply,
    lifted?: number,
  ): Promise<WorkerReply> {
    const { limits } = this.#deps;
    let instance: LiveInstance;
    try {
      instance = this.#takeReady() ?? this.#make();
    } catch (error) {
      return { kind: "failed", ...this.startFailure(error), ran: true };
    }
    const { tool, held } = instance;
    const exported = tool.find(fn);
    if (exported === undefined) return { kind: "failed", ...failures.unavailable(`its function ${fn.name} was not found`), ran: false };
    tool.guard.allow(lifted ?? liftingLimit(limits.resultBytes));
    if (tool.calls > 0) held.renew();
    tool.calls++;
    const since = performance.now();
    try {
      const reply = replyTo(await settle(exported, typeof parameters === "function" ? parameters(instance) : parameters));
      const use = held.useSince(since);
      this.#keepOrEnd(instance);
      return withUse(reply, use);
    } catch (error) {
      const memory = { usedBytes: tool.memoryBytes, capBytes: limits.memoryBytes };
      const use = held.useSince(since);
      this.#abandon(instance);
      return withUse({ kind: "failed", ...failureOf(error, memory, limits.resultBytes), ran: true }, use);
    }
  }

  /** An instance that was made, or has served, before a secret became another is not used any more. */
  #takeReady(): LiveInstance | undefined {
    for (let instance = this.#ready.pop(); instance !== undefined; instance = this.#ready.pop()) {
      if (instance.held.isCurrent()) return instance;
      this.#end(instance);
    }
    return undefined;
  }

  #keepOrEnd(instance: LiveInstance): void {
    if (instance.tool.calls < this.#deps.callsPerInstance) this.#ready.push(instance);
    else this.#end(instance);
  }

  #end(instance: LiveInstance): void {
    if (this.#mayGoOn) {
      this.#abandon(instance);
      return;
    }
    instance.held.dispose();
    this.#garbage.add(instanceBytes + instance.tool.giveBack(this.#shelf));
  }

  /** Ends an instance of which nobody knows what it will still do. */
  #abandon(instance: LiveInstance): void {
    instance.held.dispose();
    this.#garbage.add(instance.tool.memoryBytes);
  }

  #make(): LiveInstance {
    const { instantiate, modules, limits, makeImports } = this.#deps;
    const held = makeImports();
    const tool = new ToolInstance(instantiate, modules, this.#shelf, held.imports, liftingLimit(limits.resultBytes));
    return { tool, held };
  }
}

const withUse = (reply: WorkerReply, use: HostUse | null): WorkerReply =>
  use !== null && (reply.kind === "answer" || reply.kind === "failed" || reply.kind === "served") ? { ...reply, use } : reply;

const wantedByModule = ({ modules, memories }: GuestDeps): Map<WebAssembly.Module, MemoryPages> => {
  const wanted = new Map<WebAssembly.Module, MemoryPages>();
  for (const [name, module] of modules) {
    const pages = memories.get(name);
    if (pages) wanted.set(module, pages);
  }
  return wanted;
};

/** Calls and awaits only a promise of the engine: a value of the guest's may have a member `then`. */
const settle = async (exported: (...parameters: readonly unknown[]) => unknown, parameters: readonly unknown[]): Promise<Settled> => {
  try {
    const returned = exported(...parameters);
    return { returned: returned instanceof Promise ? await returned : returned };
  } catch (thrown) {
    return { thrown };
  }
};

/** Of a function that returns a result. Throws what was thrown where that is no error of the function's own. */
const returnedBy = (settled: Settled): Returned => {
  if ("returned" in settled) return { ok: settled.returned };
  if (isComponentError(settled.thrown)) return { err: settled.thrown.payload };
  throw settled.thrown;
};

const replyJson = (result: ToolResult): string => {
  const head = `{"outcome":"${result.outcome}","text":${JSON.stringify(result.text)}`;
  const structured: JsonObject | undefined = result.outcome === "ok" ? result.structured : undefined;
  return structured === undefined ? head : `${head},"structured":${compactJson(structured)}`;
};

const functionKey = (id: string | null, name: string): string => `${id ?? ""}#${name}`;

const refused = (code: string, message: string): WorkerReply => ({ kind: "refused", code, message });
