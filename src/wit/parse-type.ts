import type { Primitive } from "../api/wit.ts";
import { type ByteReader, malformed, offsetText, unsupported } from "./byte-reader.ts";
import type { ItemBudget } from "./item-budget.ts";
import { readAlias, readExtern, readName } from "./parse-extern.ts";
import type { Definition, MemberSyntax, TypeSyntax, ValueSyntax } from "./syntax.ts";

const primitives: ReadonlyMap<number, Primitive | "error-context"> = new Map<number, Primitive | "error-context">([
  [0x7f, "bool"],
  [0x7e, "s8"],
  [0x7d, "u8"],
  [0x7c, "s16"],
  [0x7b, "u16"],
  [0x7a, "s32"],
  [0x79, "u32"],
  [0x78, "s64"],
  [0x77, "u64"],
  [0x76, "f32"],
  [0x75, "f64"],
  [0x74, "char"],
  [0x73, "string"],
  [0x64, "error-context"],
]);

/** Reads one type definition, with everything nested in it. */
export const readType = (reader: ByteReader, budget: ItemBudget, depth: number): TypeSyntax => {
  const start = reader.at;
  const opcode = reader.u8("a type");
  switch (opcode) {
    case 0x3f:
      return readResource(reader);
    case 0x40:
    case 0x43:
      return {
        kind: "function",
        async: opcode === 0x43,
        params: readMembers(reader, budget, "parameters", readValue),
        result: readResult(reader),
      };
    case 0x41:
      return { kind: "component", body: readDeclarations(reader, budget, depth + 1, true) };
    case 0x42:
      return { kind: "instance", body: readDeclarations(reader, budget, depth + 1, false) };
    case 0x72:
      return { kind: "record", fields: readMembers(reader, budget, "fields", readValue) };
    case 0x71:
      return { kind: "variant", cases: readMembers(reader, budget, "cases", readCaseType) };
    case 0x70:
      return { kind: "list", element: readValue(reader), length: null };
    case 0x67:
      return { kind: "list", element: readValue(reader), length: reader.u32("the length of a list") };
    case 0x63:
      return { kind: "map", key: readValue(reader), value: readValue(reader) };
    case 0x6f:
      return { kind: "tuple", items: readList(reader, budget, "items of a tuple", readValue) };
    case 0x6e:
      return { kind: "flags", labels: readList(reader, budget, "flags", readLabel) };
    case 0x6d:
      return { kind: "enum", labels: readList(reader, budget, "cases", readLabel) };
    case 0x6b:
      return { kind: "option", some: readValue(reader) };
    case 0x6a:
      return { kind: "result", ok: readOptionalValue(reader), err: readOptionalValue(reader) };
    case 0x69:
    case 0x68:
      return { kind: opcode === 0x69 ? "own" : "borrow", resource: reader.u32("a type index") };
    case 0x66:
    case 0x65:
      return { kind: opcode === 0x66 ? "stream" : "future", element: readOptionalValue(reader) };
    default: {
      const primitive = primitives.get(opcode);
      if (primitive) return { kind: "value", type: primitive };
      throw malformed(`there is no type ${offsetText(opcode)}`, start);
    }
  }
};

const readResource = (reader: ByteReader): TypeSyntax => {
  reader.u8("the representation of a resource");
  if (reader.u8("whether a resource has a destructor") === 1) reader.u32("a function index");
  return { kind: "resource" };
};

const readValue = (reader: ByteReader): ValueSyntax => {
  const start = reader.at;
  const primitive = primitives.get(reader.peek() ?? -1);
  if (primitive) {
    reader.u8("a value type");
    return primitive;
  }
  const index = reader.s33Index("a value type");
  if (index === undefined) throw malformed("there is no such value type", start);
  return index;
};

const readOptionalValue = (reader: ByteReader): ValueSyntax | null => {
  const flag = reader.u8("whether there is a type");
  if (flag > 1) throw malformed("neither 0 nor 1 for whether there is a type", reader.at - 1);
  return flag === 1 ? readValue(reader) : null;
};

const readResult = (reader: ByteReader): ValueSyntax | null => {
  const form = reader.u8("the result of a function");
  if (form === 0x00) return readValue(reader);
  if (form === 0x01) {
    if (reader.u8("the number of results") === 0) return null;
    throw unsupported("a function has several named results, which the component model has given up", reader.at - 1);
  }
  throw malformed("there is no such form of result", reader.at - 1);
};

const readCaseType = (reader: ByteReader): ValueSyntax | null => {
  const type = readOptionalValue(reader);
  if (reader.u8("the end of a case") !== 0) throw malformed("a case that refines another", reader.at - 1);
  return type;
};

const labelPattern = /^[a-zA-Z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*$/;

/** A kebab-case label. Nothing else may name a part of a type, so that no name can carry text of another kind to a model. */
const readLabel = (reader: ByteReader): string => {
  const start = reader.at;
  const label = reader.name("a name in a type");
  if (!labelPattern.test(label)) throw malformed(`${JSON.stringify(label)} is not a kebab-case name`, start);
  return label;
};

const readList = <T>(reader: ByteReader, budget: ItemBudget, what: string, readOne: (reader: ByteReader) => T): T[] => {
  const count = reader.count(what);
  budget.spend(count, reader.at);
  const items: T[] = [];
  for (let i = 0; i < count; i++) items.push(readOne(reader));
  return items;
};

const readMembers = <T>(reader: ByteReader, budget: ItemBudget, what: string, readOne: (reader: ByteReader) => T): MemberSyntax<T>[] => {
  const names = new Set<string>();
  return readList(reader, budget, what, () => {
    const start = reader.at;
    const name = readLabel(reader);
    if (names.has(name)) throw malformed(`two ${what} are called ${JSON.stringify(name)}`, start);
    names.add(name);
    return { name, type: readOne(reader) };
  });
};

const readDeclarations = (reader: ByteReader, budget: ItemBudget, depth: number, importsAllowed: boolean): Definition[] => {
  budget.checkDepth(depth, reader.at);
  const count = reader.count("declarations");
  budget.spend(count, reader.at);
  const body: Definition[] = [];
  for (let i = 0; i < count; i++) {
    const declaration = readDeclaration(reader, budget, depth, importsAllowed);
    if (declaration) body.push(declaration);
  }
  return body;
};

const readDeclaration = (reader: ByteReader, budget: ItemBudget, depth: number, importsAllowed: boolean): Definition | null => {
  const at = reader.at;
  const form = reader.u8("a declaration");
  switch (form) {
    case 0x00:
      throw unsupported("the component describes core modules in a type, which only linkers need", at);
    case 0x01:
      return { op: "type", type: readType(reader, budget, depth), at };
    case 0x02:
      return readAlias(reader, at);
    case 0x03:
      if (!importsAllowed) throw malformed("an instance type cannot have imports", at);
      return { op: "import", name: readName(reader, "the name of an import"), extern: readExtern(reader), at };
    case 0x04:
      return { op: "export-type", name: readName(reader, "the name of an export"), extern: readExtern(reader), at };
    default:
      throw malformed(`there is no declaration ${offsetText(form)}`, at);
  }
};
