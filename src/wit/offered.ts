import { excludedReason } from "../api/untyped.ts";
import type { ComponentInterface, WitFunction, WitType } from "../api/wit.ts";
import { splitInterfaceId } from "./docs.ts";
import { partsOf } from "./type-parts.ts";

export interface NotOffered {
  readonly interface: string | null;
  readonly function: string;
  /** One sentence without a full stop, for the person who drafts or reviews. */
  readonly reason: string;
}

export interface OfferedFunctions {
  readonly offered: readonly WitFunction[];
  readonly notOffered: readonly NotOffered[];
  /** Entries of `exclude` that no exported function matches: most likely misspelt, so that what they meant to exclude is offered. */
  readonly unmatchedExclusions: readonly string[];
}

/**
 * Which exported functions can be tools, and why the others cannot (docs/reading-components.md, "What is offered").
 *
 * An entry of `exclude` is the name of a function (`list-issues`), the id of an interface with or without its version
 * (`example:github/issues@0.1.0`), or both with a `#` between them.
 */
export const offeredFunctions = (component: ComponentInterface, exclude: readonly string[]): OfferedFunctions => {
  const offered: WitFunction[] = [];
  const notOffered: NotOffered[] = [];
  const matched = new Set<string>();
  const wholeComponent = reasonAgainstAll(component);
  const crossing = new JsonCrossing();
  for (const fn of component.functions) {
    // What they list is looked at elsewhere: nobody would look for them among the tools.
    if (listsTools(fn)) continue;
    const exclusions = exclude.filter((entry) => isExcludedBy(fn, entry));
    for (const entry of exclusions) matched.add(entry);
    const excluded = exclusions.length > 0 ? excludedReason : undefined;
    const reason = reasonAgainst(fn) ?? excluded ?? wholeComponent ?? crossing.obstacleOf(fn);
    if (reason === undefined) offered.push(fn);
    else notOffered.push({ interface: fn.interface, function: fn.name, reason });
  }
  return { offered, notOffered, unmatchedExclusions: exclude.filter((entry) => !matched.has(entry)) };
};

const reasonAgainstAll = (component: ComponentInterface): string | undefined => {
  const server = component.exports.find(({ id }) => /^wasi:http\/(incoming-handler|handler)(@|$)/.test(id));
  if (server) return `the component exports ${server.id}, so it is a server and not a tool`;
  const culprit = unloadableFunction(component) ?? unloadableExport(component);
  return culprit && `no function of this component can be called, because jco cannot load one that exports ${culprit}`;
};

const unloadableFunction = ({ functions }: ComponentInterface): string | undefined => {
  const found = functions.find(isUnloadable);
  return found && `a function named ${found.name}`;
};

const unloadableExport = ({ exports }: ComponentInterface): string | undefined => {
  const found = exports.find(({ kind }) => kind !== "instance" && kind !== "function");
  return found && `the ${found.kind} ${found.id} outside an interface`;
};

/** What jco 0.15 declares in the module that it makes, in the scope of the exported functions: `exports0`, `postReturn0Async`. */
const jcoVariables = /^(exports|module|memory|realloc)\d+$|^post-return\d+(-async)?$/;

/**
 * Whether jco 0.15 makes JavaScript of the function that does not load, and so none of the whole component: strict mode has no function `arguments`, a
 * variable is declared once, and jco looks up the world's own functions in lower case (measured; other reserved words are renamed).
 */
const isUnloadable = ({ interface: id, name, form }: WitFunction): boolean => {
  if (form !== "function") return false;
  const lower = name.toLowerCase();
  return lower === "arguments" || jcoVariables.test(lower) || (id === null && lower !== name);
};

const reasonAgainst = (fn: WitFunction): string | undefined => {
  if (fn.interface?.startsWith("wasi:")) return "it belongs to a WASI interface, which the host calls and no model";
  if (fn.interface !== null && /^ambit:tool\/untyped(@|$)/.test(fn.interface))
    return "its interface is of a version that this Ambit does not speak";
  if (isToolchainInit(fn)) return "it is how the component's toolchain loads its script";
  if (fn.form !== "function") return `it is ${formTexts[fn.form]} of a resource, and a model cannot hold resources`;
  if (fn.isStackful) return "it is async without a callback, which jco cannot run yet";
  return undefined;
};

/** By which a component lists and calls tools that it defines at run time (wit/untyped.wit). */
const listsTools = ({ interface: id, form }: WitFunction): boolean =>
  id !== null && form === "function" && /^ambit:tool\/(untyped|changes)@0\.1\.\d+$/.test(id);

const formTexts = { function: "a function", method: "a method", static: "a static function", constructor: "a constructor" } as const;

/** What toolchains add to every component that they make, told from a tool of the same name by its parameters. */
const toolchainInits: readonly { readonly interface: string | null; readonly params: readonly string[] }[] = [
  { interface: null, params: ["shim", "script"] }, // componentize-qjs
  { interface: "exports", params: ["app-name", "symbols"] }, // componentize-py
];

const isToolchainInit = (fn: WitFunction): boolean =>
  fn.name === "init" &&
  toolchainInits.some((init) => init.interface === fn.interface && init.params.every((name, index) => fn.params[index]?.name === name));

const isExcludedBy = (fn: WitFunction, entry: string): boolean => {
  const hash = entry.indexOf("#");
  if (hash >= 0) return isInterface(fn, entry.slice(0, hash)) && fn.name === entry.slice(hash + 1);
  return fn.name === entry || isInterface(fn, entry);
};

const isInterface = (fn: WitFunction, id: string): boolean => {
  if (fn.interface === null || id === "") return false;
  if (fn.interface === id) return true;
  const split = splitInterfaceId(fn.interface);
  return split !== null && `${split.package.replace(/@.*/, "")}/${split.name}` === id;
};

/** Finds what keeps a function's types from being JSON. Remembers types that it has seen, since they may be shared without end. */
class JsonCrossing {
  readonly #seen = new Map<WitType, string | undefined>();

  obstacleOf(fn: WitFunction): string | undefined {
    for (const param of fn.params) {
      const obstacle = this.#within(param.type);
      if (obstacle) return `its parameter ${param.name} ${obstacle}, which JSON cannot carry`;
    }
    const obstacle = fn.result ? this.#within(fn.result) : undefined;
    return obstacle && `its result ${obstacle}, which JSON cannot carry`;
  }

  /** `is a resource (request)`, `has the field body that is a stream`. */
  #within(type: WitType): string | undefined {
    if (this.#seen.has(type)) return this.#seen.get(type);
    const found = obstacle(type) ?? this.#inParts(type);
    this.#seen.set(type, found);
    return found;
  }

  #inParts(type: WitType): string | undefined {
    for (const part of partsOf(type)) {
      const found = this.#within(part.type);
      if (found) return `has ${part.role} that ${found}`;
    }
    return undefined;
  }
}

const obstacle = (type: WitType): string | undefined => {
  switch (type.kind) {
    case "own":
    case "borrow":
      return `is a resource (${type.resource})`;
    case "stream":
      return "is a stream";
    case "future":
      return "is a future";
    case "error-context":
      return "is an error-context";
    default:
      return undefined;
  }
};
