import { Invalid } from "../api/errors.ts";
import { ByteReader, malformed, offsetText, unsupported } from "./byte-reader.ts";
import { readCanonicalFunction } from "./canonical-functions.ts";
import { ItemBudget } from "./item-budget.ts";
import type { DecodeLimits } from "./limits.ts";
import { readAlias, readExtern, readName, readSortIndex } from "./parse-extern.ts";
import { readType } from "./parse-type.ts";
import type { ComponentSyntax, Definition, NamedItem } from "./syntax.ts";

/** Custom sections that carry docs: ours, and the one that wasm-tools writes. */
export const docsSectionNames: ReadonlySet<string> = new Set(["ambit-docs", "package-docs"]);

const componentVersion = 0x0d;

/**
 * Parses a component binary without resolving any index. Throws `Invalid`: `NotWasm`, `CoreModule`, `ComponentMalformed`, `ComponentTooLarge`,
 * `ComponentTooDeep` or `ComponentUnsupported`, `at` a byte offset.
 */
export const parseComponent = (bytes: Uint8Array, limits: DecodeLimits): ComponentSyntax => {
  if (bytes.length > limits.maxBytes) {
    throw new Invalid("ComponentTooLarge", `the component has ${bytes.length} bytes, more than the ${limits.maxBytes} allowed`, "0x0");
  }
  const reader = new ByteReader(bytes, 0, bytes.length, limits.maxNameBytes);
  readPreamble(reader);
  const docsSections: { name: string; content: Uint8Array; at: number }[] = [];
  const found: FoundAnywhere = { isAsynchronous: false };
  const body = readBody(reader, new ItemBudget(limits), found, 0, (custom) => {
    const at = custom.at;
    const name = custom.name("the name of a custom section");
    if (docsSectionNames.has(name)) docsSections.push({ name, content: custom.rest(), at });
  });
  return { body, docsSections, isAsynchronous: found.isAsynchronous };
};

/** Reads the eight bytes that every component starts with. */
export const readPreamble = (reader: ByteReader): void => {
  const magic = [0x00, 0x61, 0x73, 0x6d];
  if (!magic.every((byte) => !reader.done && reader.u8("the magic number") === byte)) {
    throw new Invalid("NotWasm", "not WebAssembly: the file does not start with the bytes 00 61 73 6d", "0x0");
  }
  const version = reader.u8("the version") + reader.u8("the version") * 256;
  const layer = reader.u8("the layer") + reader.u8("the layer") * 256;
  if (layer === 0) {
    throw new Invalid(
      "CoreModule",
      "a core WebAssembly module, not a component: make a component of it, for example with `wasm-tools component new`",
      "0x4",
    );
  }
  if (layer !== 1) throw unsupported(`WebAssembly of layer ${layer}; components are layer 1`, 6);
  if (version !== componentVersion)
    throw unsupported(`a component of binary version ${version}; version ${componentVersion} is understood`, 4);
};

/** What is said of the component as a whole, whichever of its inner components has it. */
interface FoundAnywhere {
  isAsynchronous: boolean;
}

const readBody = (
  reader: ByteReader,
  budget: ItemBudget,
  found: FoundAnywhere,
  depth: number,
  onCustom: (custom: ByteReader) => void,
): Definition[] => {
  budget.checkDepth(depth, reader.at);
  const body: Definition[] = [];
  while (!reader.done) {
    const start = reader.at;
    const id = reader.u8("a section");
    const length = reader.u32("the size of a section");
    const section = reader.slice(length, `section ${id}`);
    budget.spend(1, start);
    switch (id) {
      case 0:
        onCustom(section);
        break;
      case 1: // core module
      case 2: // core instances
      case 3: // core types
        break;
      case 4:
        readPreamble(section);
        body.push({ op: "component", body: readBody(section, budget, found, depth + 1, () => {}), at: start });
        break;
      case 5:
        readAll(section, "instances", budget, (at) => body.push(readInstance(section, budget, at)));
        break;
      case 6:
        readAll(section, "aliases", budget, (at) => pushUnlessNull(body, readAlias(section, at)));
        break;
      case 7:
        readAll(section, "types", budget, (at) => body.push({ op: "type", type: readType(section, budget, depth), at }));
        break;
      case 8:
        readAll(section, "canonical functions", budget, (at) => {
          const { lift, isAsynchronous } = readCanonicalFunction(section);
          if (isAsynchronous) found.isAsynchronous = true;
          if (lift) body.push({ op: "lift", ...lift, at });
        });
        break;
      case 9:
        throw unsupported("the component has a start function, which no runtime supports yet", start);
      case 10:
        readAll(section, "imports", budget, (at) =>
          body.push({ op: "import", name: readName(section, "the name of an import"), extern: readExtern(section), at }),
        );
        break;
      case 11:
        readAll(section, "exports", budget, (at) => body.push(readExport(section, at)));
        break;
      case 12:
        throw unsupported("the component has values, which no runtime supports yet", start);
      default:
        throw malformed(`there is no section ${id}`, start);
    }
  }
  return body;
};

const readAll = (section: ByteReader, what: string, budget: ItemBudget, readOne: (at: number) => void): void => {
  const count = section.count(what);
  budget.spend(count, section.at);
  for (let i = 0; i < count; i++) readOne(section.at);
  section.expectEnd(`the section of ${what}`);
};

const pushUnlessNull = (body: Definition[], definition: Definition | null): void => {
  if (definition) body.push(definition);
};

const readInstance = (reader: ByteReader, budget: ItemBudget, at: number): Definition => {
  const form = reader.u8("an instance");
  if (form === 0x00) return { op: "instantiate", component: reader.u32("a component index"), args: readArguments(reader, budget), at };
  if (form === 0x01) return { op: "instance", exports: readInlineExports(reader, budget), at };
  throw malformed(`there is no instance of form ${offsetText(form)}`, at);
};

const readArguments = (reader: ByteReader, budget: ItemBudget): NamedItem[] => {
  const count = reader.count("arguments");
  budget.spend(count, reader.at);
  const items: NamedItem[] = [];
  for (let i = 0; i < count; i++) {
    const name = reader.name("the name of an argument");
    const item = readSortIndex(reader);
    if (item) items.push({ name, ...item });
  }
  return items;
};

const readInlineExports = (reader: ByteReader, budget: ItemBudget): NamedItem[] => {
  const count = reader.count("exports");
  budget.spend(count, reader.at);
  const items: NamedItem[] = [];
  for (let i = 0; i < count; i++) {
    const name = readName(reader, "the name of an export");
    const item = readSortIndex(reader);
    if (item) items.push({ name, ...item });
  }
  return items;
};

const readExport = (reader: ByteReader, at: number): Definition => {
  const name = readName(reader, "the name of an export");
  const item = readSortIndex(reader);
  if (!item) throw malformed(`${JSON.stringify(name)} exports something that a component cannot export`, at);
  const flag = reader.u8("whether an export has a type");
  if (flag > 1) throw malformed("neither 0 nor 1 for whether an export has a type", reader.at - 1);
  return { op: "export", name, item, ascribed: flag === 1 ? readExtern(reader) : null, at };
};
