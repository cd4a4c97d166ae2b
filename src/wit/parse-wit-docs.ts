import { Invalid } from "../api/errors.ts";
import type { InterfaceDocs, PackageDocs, TypeDocs, WitDocs, WorldDocs } from "./docs.ts";
import { WitCursor } from "./wit-cursor.ts";
import { resolveIncludes, type WorldDraft } from "./world-includes.ts";

export interface WitFile {
  /** Relative to the folder that holds the WIT, with `/` between parts: which files make one package follows from it. */
  readonly path: string;
  readonly text: string;
}

/** Longest WIT text read, over all files, in UTF-16 code units. */
const maxTextLength = 4 * 1024 * 1024;

/**
 * Reads the doc comments of WIT text: several packages, in nested `package … { }` blocks, in files of their own, and in folders, as WIT tools lay them
 * out. Files of one folder are one package, of which one file has the header; a file directly in a folder `deps` is a package by itself.
 *
 * Types are not resolved: text that no WIT tool would accept may still be read. Throws `Invalid`: `WitSyntax` (`at` is `file:line:column`),
 * `WitWithoutPackage`, `WitTooLarge`.
 */
export const parseWitDocs = (files: readonly WitFile[]): WitDocs => {
  const length = files.reduce((sum, file) => sum + file.text.length, 0);
  if (length > maxTextLength) {
    throw new Invalid("WitTooLarge", `the WIT text has ${length} characters, more than the ${maxTextLength} allowed`);
  }
  const packages = new Map<string, PackageDraft>();
  for (const group of groupByPackage(files)) readGroup(group, packages);
  return { packages: finish(packages) };
};

interface InterfaceDraft extends InterfaceDocs {
  readonly functions: Map<string, string>;
  readonly types: Map<string, TypeDocs>;
}

interface PackageDraft {
  docs: string;
  readonly interfaces: Map<string, InterfaceDocs>;
  readonly worlds: Map<string, WorldDraft>;
}

const emptyPackage = (): PackageDraft => ({ docs: "", interfaces: new Map(), worlds: new Map() });

const groupByPackage = (files: readonly WitFile[]): WitFile[][] => {
  const groups = new Map<string, WitFile[]>();
  for (const file of files) {
    const folder = file.path.split("/").slice(0, -1);
    const key = folder.at(-1) === "deps" ? file.path : folder.join("/");
    const group = groups.get(key);
    if (group) group.push(file);
    else groups.set(key, [file]);
  }
  return [...groups.values()];
};

const readGroup = (group: readonly WitFile[], packages: Map<string, PackageDraft>): void => {
  const own = emptyPackage();
  let id: string | null = null;
  for (const file of group) {
    const cursor = new WitCursor(file.path, file.text);
    const header = readFile(cursor, own, packages);
    if (header === null) continue;
    if (id !== null && id !== header) throw cursor.fail(`files beside each other are one package, but they are called ${id} and ${header}`);
    id = header;
  }
  if (id !== null) mergePackage(packages, id, own);
  else if (own.interfaces.size + own.worlds.size > 0) {
    const path = group[0]?.path ?? "";
    throw new Invalid(
      "WitWithoutPackage",
      `${path}: no file of this folder says which package it is; start one with \`package name:space;\``,
      path,
    );
  }
};

const mergePackage = (packages: Map<string, PackageDraft>, id: string, more: PackageDraft): void => {
  const known = packages.get(id);
  if (!known) {
    packages.set(id, more);
    return;
  }
  known.docs ||= more.docs;
  for (const [name, docs] of more.interfaces) known.interfaces.set(name, docs);
  for (const [name, docs] of more.worlds) known.worlds.set(name, docs);
};

/** Returns the package that the file says it belongs to. */
const readFile = (cursor: WitCursor, own: PackageDraft, packages: Map<string, PackageDraft>): string | null => {
  let id: string | null = null;
  while (!cursor.done) {
    skipAttributes(cursor);
    if (!cursor.accept("package")) {
      readPackageItem(cursor, own);
      continue;
    }
    const docs = cursor.takeDocs();
    const name = packageId(cursor);
    if (cursor.accept("{")) {
      const nested = emptyPackage();
      nested.docs = docs;
      while (!cursor.accept("}")) {
        skipAttributes(cursor);
        readPackageItem(cursor, nested);
      }
      mergePackage(packages, name, nested);
    } else {
      cursor.expect(";");
      if (id !== null) throw cursor.fail("a file has one package header");
      id = name;
      own.docs ||= docs;
    }
  }
  return id;
};

const packageId = (cursor: WitCursor): string => {
  let id = cursor.name();
  cursor.expect(":");
  id += `:${cursor.name()}`;
  while (cursor.accept(":")) id += `:${cursor.name()}`;
  return cursor.accept("@") ? `${id}@${cursor.version()}` : id;
};

const readPackageItem = (cursor: WitCursor, into: PackageDraft): void => {
  if (cursor.accept("interface")) {
    const docs = cursor.takeDocs();
    into.interfaces.set(cursor.name(), readInterface(cursor, docs));
  } else if (cursor.accept("world")) {
    const docs = cursor.takeDocs();
    into.worlds.set(cursor.name(), readWorld(cursor, docs));
  } else if (cursor.accept("use")) {
    endStatement(cursor);
  } else throw cursor.unexpected("`package`, `interface`, `world` or `use`");
};

const endStatement = (cursor: WitCursor): void => {
  cursor.skipTo(";");
  cursor.expect(";");
};

/** `@since(version = 0.2.0)` and its like. */
const skipAttributes = (cursor: WitCursor): void => {
  while (cursor.accept("@")) {
    cursor.name();
    if (!cursor.accept("(")) continue;
    while (!cursor.accept(")")) {
      cursor.name();
      cursor.expect("=");
      if (/[0-9]/.test(cursor.peek())) cursor.version();
      else cursor.name();
      cursor.accept(",");
    }
  }
};

const readInterface = (cursor: WitCursor, docs: string): InterfaceDocs => {
  const draft: InterfaceDraft = { docs, functions: new Map(), types: new Map() };
  cursor.expect("{");
  while (!cursor.accept("}")) {
    skipAttributes(cursor);
    if (readTypeItem(cursor, draft)) continue;
    const functionDocs = cursor.takeDocs();
    const name = cursor.name();
    cursor.expect(":");
    endStatement(cursor);
    if (functionDocs !== "") draft.functions.set(name, functionDocs);
  }
  return draft;
};

/** Reads a `use` or a type definition, if one is next. */
const readTypeItem = (cursor: WitCursor, into: InterfaceDraft): boolean => {
  if (cursor.accept("use")) {
    endStatement(cursor);
    return true;
  }
  const keyword = ["type", "record", "variant", "enum", "flags", "resource"].find((word) => cursor.accept(word));
  if (keyword === undefined) return false;
  const docs = cursor.takeDocs();
  const name = cursor.name();
  const members = new Map<string, string>();
  if (keyword === "type") {
    endStatement(cursor);
  } else if (keyword === "resource") {
    if (cursor.accept("{")) readResourceBody(cursor);
    else endStatement(cursor);
  } else {
    readMembers(cursor, members);
  }
  if (docs !== "" || members.size > 0) into.types.set(name, { docs, members });
  return true;
};

const readMembers = (cursor: WitCursor, members: Map<string, string>): void => {
  cursor.expect("{");
  while (!cursor.accept("}")) {
    const docs = cursor.takeDocs();
    const name = cursor.name();
    if (docs !== "") members.set(name, docs);
    cursor.skipTo(",}");
    cursor.accept(",");
  }
};

/** Methods are never offered, so what they are documented with is not kept. */
const readResourceBody = (cursor: WitCursor): void => {
  while (!cursor.accept("}")) {
    skipAttributes(cursor);
    endStatement(cursor);
  }
};

const readWorld = (cursor: WitCursor, docs: string): WorldDraft => {
  const draft: WorldDraft = { docs, functions: new Map(), types: new Map(), interfaces: new Map(), includes: [] };
  cursor.expect("{");
  while (!cursor.accept("}")) {
    skipAttributes(cursor);
    if (cursor.accept("include")) draft.includes.push(readInclude(cursor));
    else if (cursor.accept("import")) readWorldExtern(cursor, null);
    else if (cursor.accept("export")) readWorldExtern(cursor, draft);
    else if (!readTypeItem(cursor, draft)) throw cursor.unexpected("`import`, `export`, `include`, `use` or a type");
  }
  return draft;
};

const readInclude = (cursor: WitCursor): WorldDraft["includes"][number] => {
  const world = readPath(cursor);
  const renames = new Map<string, string>();
  if (cursor.accept("with")) {
    cursor.expect("{");
    while (!cursor.accept("}")) {
      const name = cursor.name();
      cursor.expect("as");
      renames.set(name, cursor.name());
      cursor.accept(",");
    }
  } else cursor.expect(";");
  cursor.accept(";");
  return { world, renames };
};

/** `name`, or `space:package/name@version`. */
const readPath = (cursor: WitCursor): string => {
  let path = cursor.name();
  while (cursor.accept(":")) path += `:${cursor.name()}`;
  while (cursor.accept("/")) path += `/${cursor.name()}`;
  return cursor.accept("@") ? `${path}@${cursor.version()}` : path;
};

/** What follows `import` or `export` in a world; kept where it is exported under a plain name, since an interface by id has its docs elsewhere. */
const readWorldExtern = (cursor: WitCursor, into: WorldDraft | null): void => {
  const docs = cursor.takeDocs();
  const name = cursor.name();
  if (!cursor.accept(":")) {
    endStatement(cursor);
    return;
  }
  if (cursor.accept("interface")) {
    const inline = readInterface(cursor, docs);
    cursor.accept(";");
    into?.interfaces.set(name, inline);
    return;
  }
  const isFunction = cursor.accept("func") || cursor.accept("async");
  endStatement(cursor);
  if (isFunction && docs !== "") into?.functions.set(name, docs);
};

const finish = (packages: ReadonlyMap<string, PackageDraft>): Map<string, PackageDocs> => {
  const finished = new Map<string, PackageDocs>();
  const worldOf = resolveIncludes(packages);
  for (const [id, draft] of packages) {
    const worlds = new Map<string, WorldDocs>();
    for (const name of draft.worlds.keys()) worlds.set(name, worldOf(id, name));
    finished.set(id, { docs: draft.docs, interfaces: draft.interfaces, worlds });
  }
  return finished;
};
