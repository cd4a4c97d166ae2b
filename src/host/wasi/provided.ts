import type { WitImport } from "../../api/wit.ts";
import { NeverMade } from "./never-made.ts";

/**
 * `wasi:http/types@0.2.6` → `http/types`; null for what is not WASI 0.2. Every 0.2 release is served by the same implementation: releases only add
 * functions (Semantic Versioning, and WASI's own promise for 0.2), and what a component asks for beyond them is named when it is loaded.
 */
export const wasiInterface = (id: string): string | null => /^wasi:([a-z-]+\/[a-z-]+)@0\.2\.[0-9]+$/.exec(id)?.[1] ?? null;

/** `list-issues` → `listIssues`, as the transpiler names functions. */
export const camelCase = (name: string): string => name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** `input-stream` → `InputStream`, as the transpiler names classes. */
export const pascalCase = (name: string): string => {
  const camel = camelCase(name);
  return camel.charAt(0).toUpperCase() + camel.slice(1);
};

/** Whether an implementation has the function or resource, named as in WIT: `poll`, `pollable`, `[method]pollable.block`, `[static]fields.from-list`. */
export const implementationHas = (implementation: Readonly<Record<string, unknown>>, name: string): boolean => {
  const member = /^\[(constructor|method|static)\]([a-z0-9-]+)(?:\.([a-z0-9-]+))?$/.exec(name);
  if (member === null) return hasOwnFunction(implementation, camelCase(name)) || hasOwnFunction(implementation, pascalCase(name));
  const [, form, resource = "", fn = ""] = member;
  const found = Object.hasOwn(implementation, pascalCase(resource)) ? implementation[pascalCase(resource)] : undefined;
  if (typeof found !== "function") return false;
  if (form === "constructor" || found.prototype instanceof NeverMade) return true;
  return form === "static"
    ? definesFunction(found, camelCase(fn), Function.prototype)
    : definesFunction(found.prototype, camelCase(fn), Object.prototype);
};

const hasOwnFunction = (owner: object, name: string): boolean =>
  name !== "constructor" && typeof Object.getOwnPropertyDescriptor(owner, name)?.value === "function";

/** Whether a class or one it extends defines the function: what all objects or functions have does not count. */
const definesFunction = (owner: object, name: string, end: object): boolean => {
  for (let at: object | null = owner; at !== null && at !== end; at = Object.getPrototypeOf(at)) {
    if (hasOwnFunction(at, name)) return true;
  }
  return false;
};

/** Functions that wait. Without HTTP nothing that they wait for needs the event loop, so they block their thread and cost no promise. */
const waiting: Readonly<Record<string, readonly string[]>> = {
  "io/poll": ["poll", "[method]pollable.block"],
  "io/streams": [
    "[method]input-stream.blocking-read",
    "[method]input-stream.blocking-skip",
    "[method]output-stream.blocking-flush",
    "[method]output-stream.blocking-write-and-flush",
    "[method]output-stream.blocking-write-zeroes-and-flush",
    "[method]output-stream.blocking-splice",
  ],
};

/** Whether a component's blocking calls have to suspend it: it can send requests or serve them, and what comes of them comes through the event loop. */
export const guestSuspends = (imports: readonly WitImport[]): boolean =>
  imports.some(({ id, functions }) => {
    const name = wasiInterface(id);
    return name === "http/outgoing-handler" || (name === "http/types" && functions.includes("[static]response-outparam.set"));
  });

/**
 * What the transpiler must be told are asynchronous imports, as it spells them: `wasi:io/poll@0.2.6#[method]pollable.block`. Empty for a component that
 * neither sends nor serves requests; then its exports need not be asynchronous either. Where it is not empty, every export must be.
 */
export const asyncImportNames = (imports: readonly WitImport[]): string[] => {
  if (!guestSuspends(imports)) return [];
  return imports.flatMap(({ id, functions }) => {
    const names = waiting[wasiInterface(id) ?? ""] ?? [];
    return functions.filter((name) => names.includes(name)).map((name) => `${id}#${name}`);
  });
};
