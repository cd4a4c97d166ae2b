import { type ByteReader, malformed, offsetText, unsupported } from "./byte-reader.ts";
import type { Definition, Extern, Sort, SortIndex } from "./syntax.ts";

/** There are three, each of which may be given once. */
const maxNameOptions = 3;

const plainName = /^(\[[a-z]+( [a-z]+)*\])*[a-zA-Z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*(\.[a-zA-Z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*)?$/;
const interfaceId = /^[a-zA-Z][a-zA-Z0-9-]*(:[a-zA-Z][a-zA-Z0-9-]*)+(\/[a-zA-Z][a-zA-Z0-9-]*)+(@[0-9A-Za-z.+-]+)?$/;

/**
 * A name of an import or export, with the version suffix that newer encoders keep apart from it. Only kebab-case names and interface ids pass, so that no
 * name can carry text of another kind to a reader.
 */
export const readName = (reader: ByteReader, what: string): string => {
  const start = reader.at;
  const name = readSuffixedName(reader, what);
  if (plainName.test(name) || interfaceId.test(name)) return name;
  throw unsupported(`imports and exports are known by kebab-case names and interface ids, not as ${JSON.stringify(name)}`, start);
};

const readSuffixedName = (reader: ByteReader, what: string): string => {
  const start = reader.at;
  const form = reader.u8(what);
  const name = reader.name(what);
  if (form <= 0x01) return name;
  if (form !== 0x02) throw malformed(`there is no name of form ${offsetText(form)}`, start);
  let suffix = "";
  let implemented = false;
  const count = reader.count("options of a name");
  if (count > maxNameOptions) throw malformed(`${count} options of a name, more than there are`, start);
  for (let i = 0; i < count; i++) {
    const at = reader.at;
    const option = reader.u8("an option of a name");
    const text = reader.name("an option of a name");
    if (option === 0x00) implemented = true;
    else if (option === 0x01) suffix = text;
    else if (option !== 0x02) throw malformed(`there is no option ${offsetText(option)} of a name`, at);
  }
  return !implemented && name.includes("@") ? name + suffix : name;
};

/** `core` stands for every core sort that leaves no trace in an interface. */
export const readSort = (reader: ByteReader): Sort | "core" => {
  const at = reader.at;
  const sort = reader.u8("a sort");
  switch (sort) {
    case 0x00:
      return reader.u8("a core sort") === 0x11 ? "module" : "core";
    case 0x01:
      return "function";
    case 0x02:
      return "value";
    case 0x03:
      return "type";
    case 0x04:
      return "component";
    case 0x05:
      return "instance";
    default:
      throw malformed(`there is no sort ${offsetText(sort)}`, at);
  }
};

/** Null for an item of a core sort. */
export const readSortIndex = (reader: ByteReader): SortIndex | null => {
  const sort = readSort(reader);
  const index = reader.u32("an index");
  return sort === "core" ? null : { sort, index };
};

export const readExtern = (reader: ByteReader): Extern => {
  const at = reader.at;
  const sort = readSort(reader);
  switch (sort) {
    case "module":
      reader.u32("a core type index");
      return { sort };
    case "function":
    case "component":
    case "instance":
      return { sort, type: reader.u32("a type index") };
    case "value":
      throw unsupported("the component imports or exports a value, which no runtime supports yet", at);
    case "type": {
      const bound = reader.u8("the bound of a type");
      if (bound === 0x00) return { sort, bound: "equal", type: reader.u32("a type index") };
      if (bound === 0x01) return { sort, bound: "resource" };
      throw malformed(`there is no bound ${offsetText(bound)} of a type`, at);
    }
    case "core":
      throw malformed("a component cannot import or export this core sort", at);
  }
};

/** Null for aliases of core sorts. */
export const readAlias = (reader: ByteReader, at: number): Definition | null => {
  const sort = readSort(reader);
  const target = reader.u8("the target of an alias");
  switch (target) {
    case 0x00: {
      const instance = reader.u32("an instance index");
      const name = reader.name("the name of an aliased export");
      return sort === "core" ? null : { op: "alias-export", sort, instance, name, at };
    }
    case 0x01:
      reader.u32("a core instance index");
      reader.name("the name of an aliased core export");
      return null;
    case 0x02: {
      const count = reader.u32("how many components outward");
      const index = reader.u32("an index");
      return sort === "core" || sort === "module" ? null : { op: "alias-outer", sort, count, index, at };
    }
    default:
      throw malformed(`there is no alias target ${offsetText(target)}`, at);
  }
};
