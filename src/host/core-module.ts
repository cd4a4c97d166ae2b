import { Invalid } from "../api/errors.ts";

/**
 * Bounds on what a core module may take at run time, written into its bytes before it is compiled. A cap by V8 flag counts each memory by itself,
 * a table's growth is bounded by no flag at all, and arrays of the garbage collection proposal live on V8's own heap: so memory and table maxima are
 * clamped, and modules that define such types are refused.
 *
 * Only what the module defines is changed. What it imports is another module's, or V8 refuses the link. A memory that it defines becomes one that the host
 * gives it, so that the host sees how large it is and may give the next instance the same one, emptied, in place of a new one.
 */
export interface CoreModuleLimits {
  /** Pages of 64 KiB that each defined memory may grow to, in order. */
  readonly memoryPages: readonly number[];
  /** Elements that each defined table may grow to, in order. */
  readonly tableElements: readonly number[];
}

export interface Limits {
  readonly min: number;
  /** `undefined`: may grow as far as the engine lets it. */
  readonly max: number | undefined;
}

/** The memories and tables that a core module defines. */
export interface CoreModuleResources {
  readonly memories: readonly Limits[];
  readonly tables: readonly Limits[];
}

export const pageBytes = 65_536;

/** Where a clamped module imports the memory from that it defined before. */
export const hostMemory = { module: "ambit:host", name: "memory" } as const;

const sections = { custom: 0, type: 1, import: 2, table: 4, memory: 5 } as const;
/** Read whole: whatever else they held would vanish, or be taken for what it is not. */
const readWhole: ReadonlySet<number> = new Set([sections.import, sections.table, sections.memory]);
const highestSection = 13;

/**
 * What a core module defines. Throws `Invalid` with code `ComponentMalformed`, or `ComponentUnsupported` for what cannot be contained; `at` is the byte
 * offset in the module.
 */
export const coreModuleResources = (module: Uint8Array): CoreModuleResources => {
  const memories: Limits[] = [];
  const tables: Limits[] = [];
  for (const section of readSections(module)) {
    const reader = new Reader(module, section.start, section.end);
    if (section.id === sections.type) checkTypes(reader);
    if (section.id === sections.import) {
      reader.vector(() => {
        const imported = readImport(reader);
        if (imported.module === hostMemory.module)
          throw unsupported(`an import from ${hostMemory.module}, which is the host's own name`, section.start);
      });
    }
    if (section.id === sections.memory) reader.vector(() => memories.push(readMemory(reader)));
    if (section.id === sections.table) reader.vector(() => tables.push(readTable(reader).limits));
    if (readWhole.has(section.id) && !reader.atEnd) throw malformed("a section is longer than what it holds", reader.at);
  }
  if (memories.length > 1) throw unsupported("several memories", 0);
  return { memories, tables };
};

/**
 * The same module with the maxima of its tables set, and its memory imported as `hostMemory`. A limit below a memory's or table's minimum is a mistake of
 * the caller.
 */
export const clampCoreModule = (module: Uint8Array, limits: CoreModuleLimits): Uint8Array => {
  const found = readSections(module);
  const memory = found.find(({ id }) => id === sections.memory);
  const imported = memory === undefined ? [] : memoryImports(new Reader(module, memory.start, memory.end), limits.memoryPages);
  const parts: Uint8Array[] = [module.subarray(0, 8)];
  let isWritten = imported.length === 0;
  for (const section of found) {
    const reader = new Reader(module, section.start, section.end);
    if (!isWritten && section.id === sections.import) {
      parts.push(withImports(module, section, reader.u32(), reader.at, imported));
      isWritten = true;
      continue;
    }
    if (!isWritten && section.id !== sections.custom && section.id !== sections.type) {
      parts.push(encodeSection(sections.import, [...leb(imported.length), ...imported.flat()]));
      isWritten = true;
    }
    if (section.id === sections.memory) continue;
    if (section.id === sections.table) {
      parts.push(encodeSection(section.id, clampTables(reader, module, limits.tableElements)));
    } else {
      parts.push(module.subarray(section.header, section.end));
    }
  }
  return Buffer.concat(parts);
};

/** The memory that a clamped module wants from the host, in pages; null where it has none of its own. Throws as `coreModuleResources`. */
export const wantedMemory = (clamped: Uint8Array): MemoryPages | null => {
  for (const section of readSections(clamped)) {
    if (section.id !== sections.import) continue;
    const reader = new Reader(clamped, section.start, section.end);
    let wanted: MemoryPages | null = null;
    reader.vector(() => {
      const { module, name, memory } = readImport(reader);
      if (module === hostMemory.module && name === hostMemory.name && memory !== null) {
        wanted = { initial: memory.min, maximum: memory.max ?? memory.min };
      }
    });
    return wanted;
  }
  return null;
};

/** A memory's size, in pages of 64 KiB. */
export interface MemoryPages {
  readonly initial: number;
  readonly maximum: number;
}

/** Appended to the module's own imports, so that every index stays what it was: imported memories come before defined ones. */
const withImports = (
  module: Uint8Array,
  section: Section,
  count: number,
  start: number,
  added: readonly (readonly number[])[],
): Uint8Array => {
  const entries = module.subarray(start, section.end);
  const grown = leb(count + added.length);
  const more = Uint8Array.from(added.flat());
  const size = leb(grown.length + entries.length + more.length);
  return Buffer.concat([Uint8Array.from([sections.import, ...size, ...grown]), entries, more]);
};

const memoryImports = (reader: Reader, pages: readonly number[]): number[][] => {
  const { module, name } = hostMemory;
  const place = [module.length, ...Buffer.from(module, "ascii"), name.length, ...Buffer.from(name, "ascii"), 0x02];
  const imports: number[][] = [];
  reader.vector(() => {
    const { min } = readMemory(reader);
    imports.push([...place, 1, ...leb(min), ...leb(pages[imports.length] ?? min)]);
  });
  return imports;
};

const readImport = (reader: Reader): { module: string; name: string; memory: Limits | null } => {
  const module = reader.name();
  const name = reader.name();
  const at = reader.at;
  const kind = reader.byte();
  let memory: Limits | null = null;
  if (kind === 0x00) reader.u32();
  else if (kind === 0x01) {
    readValueType(reader);
    readLimits(reader, "table");
  } else if (kind === 0x02) memory = readMemory(reader);
  else if (kind === 0x03) {
    readValueType(reader);
    reader.byte();
  } else if (kind === 0x04) {
    reader.byte();
    reader.u32();
  } else throw unsupported(`an import of the kind 0x${kind.toString(16)}`, at);
  return { module, name, memory };
};

const clampTables = (reader: Reader, module: Uint8Array, elements: readonly number[]): number[] => {
  const body: number[] = [];
  let count = 0;
  reader.vector(() => {
    const table = readTable(reader);
    body.push(...module.subarray(table.start, table.limitsStart), 1, ...leb(table.limits.min));
    body.push(...leb(elements[count] ?? table.limits.min), ...module.subarray(table.limitsEnd, table.end));
    count++;
  });
  return [...leb(count), ...body];
};

interface Section {
  readonly id: number;
  /** Offsets: of the id byte, of the content, and past the content. */
  readonly header: number;
  readonly start: number;
  readonly end: number;
}

const preamble = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

const readSections = (module: Uint8Array): Section[] => {
  if (preamble.some((byte, index) => module[index] !== byte)) throw malformed("it does not start as a core module does", 0);
  const found: Section[] = [];
  const reader = new Reader(module, preamble.length, module.length);
  while (!reader.atEnd) {
    const header = reader.at;
    const id = reader.byte();
    const size = reader.u32();
    const start = reader.at;
    if (id > highestSection) throw malformed(`unknown section ${id}`, header);
    reader.skip(size);
    found.push({ id, header, start, end: reader.at });
  }
  return found;
};

const readMemory = (reader: Reader): Limits => {
  const at = reader.at;
  const limits = readLimits(reader, "memory");
  if (limits.min > 65_536) throw malformed("a memory starts above 4 GiB", at);
  return limits;
};

const readTable = (reader: Reader): { start: number; limitsStart: number; limitsEnd: number; end: number; limits: Limits } => {
  const start = reader.at;
  const hasInitialiser = reader.peek() === 0x40;
  if (hasInitialiser) reader.skip(2);
  readValueType(reader);
  const limitsStart = reader.at;
  const limits = readLimits(reader, "table");
  const limitsEnd = reader.at;
  if (hasInitialiser) skipConstant(reader);
  return { start, limitsStart, limitsEnd, end: reader.at, limits };
};

/** Flags beyond "has a maximum" stand for shared, 64-bit and custom-paged memories. */
const readLimits = (reader: Reader, what: string): Limits => {
  const at = reader.at;
  const flags = reader.byte();
  if (flags > 1) throw unsupported(`a ${what} that is shared, 64-bit or has custom pages`, at);
  const min = reader.u32();
  return { min, max: flags === 1 ? reader.u32() : undefined };
};

/** Functions only: arrays and structs are allocated on V8's heap, where no limit of ours reaches. */
const checkTypes = (reader: Reader): void => {
  reader.vector(() => {
    if (reader.peek() === 0x4e) {
      reader.byte();
      reader.vector(() => checkSubtype(reader));
    } else {
      checkSubtype(reader);
    }
  });
};

const checkSubtype = (reader: Reader): void => {
  const form = reader.peek();
  if (form === 0x50 || form === 0x4f) {
    reader.byte();
    reader.vector(() => reader.u32());
  }
  const at = reader.at;
  const kind = reader.byte();
  if (kind === 0x5e || kind === 0x5f) throw unsupported("a garbage-collected array or struct type", at);
  if (kind !== 0x60) throw unsupported(`the type form 0x${kind.toString(16)}`, at);
  reader.vector(() => readValueType(reader));
  reader.vector(() => readValueType(reader));
};

const plainValueTypes = new Set([0x7f, 0x7e, 0x7d, 0x7c, 0x7b]);
/** func, extern, exn and their bottoms; any, eq, i31, struct and array belong to garbage collection. */
const heapTypes = new Set([0x70, 0x6f, 0x69, 0x73, 0x72, 0x74]);

const readValueType = (reader: Reader): void => {
  const at = reader.at;
  const code = reader.byte();
  if (plainValueTypes.has(code) || heapTypes.has(code)) return;
  if (code !== 0x63 && code !== 0x64) throw unsupported(`the value type 0x${code.toString(16)}`, at);
  readHeapType(reader);
};

const readHeapType = (reader: Reader): void => {
  const at = reader.at;
  if (heapTypes.has(reader.peek())) {
    reader.byte();
    return;
  }
  const code = reader.peek();
  // Below 0x40 or with a continuation bit it is an index into the checked types.
  if (code >= 0x40 && code < 0x80) throw unsupported(`the heap type 0x${code.toString(16)}`, at);
  reader.u32();
};

/** A table's initial element: `ref.null`, `ref.func`, or a global. */
const skipConstant = (reader: Reader): void => {
  const at = reader.at;
  const opcode = reader.byte();
  if (opcode === 0xd0) readHeapType(reader);
  else if (opcode === 0xd2 || opcode === 0x23) reader.u32();
  else throw unsupported(`a table that starts from the instruction 0x${opcode.toString(16)}`, at);
  if (reader.byte() !== 0x0b) throw unsupported("a table that starts from several instructions", at);
};

const encodeSection = (id: number, body: readonly number[]): Uint8Array => Uint8Array.from([id, ...leb(body.length), ...body]);

const leb = (value: number): number[] => {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest === 0 ? low : low + 128);
  } while (rest !== 0);
  return bytes;
};

const malformed = (why: string, at: number): Invalid =>
  new Invalid("ComponentMalformed", `a core module of the component is malformed: ${why}`, `0x${at.toString(16)}`);

const unsupported = (what: string, at: number): Invalid =>
  new Invalid(
    "ComponentUnsupported",
    `a core module of the component has ${what}, which can't be contained and isn't run`,
    `0x${at.toString(16)}`,
  );

class Reader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  at: number;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.at = start;
  }

  get atEnd(): boolean {
    return this.at >= this.#end;
  }

  peek(): number {
    const byte = this.at < this.#end ? this.#bytes[this.at] : undefined;
    if (byte === undefined) throw malformed("it ends too early", this.at);
    return byte;
  }

  byte(): number {
    const byte = this.peek();
    this.at++;
    return byte;
  }

  skip(count: number): void {
    if (count > this.#end - this.at) throw malformed("it ends too early", this.at);
    this.at += count;
  }

  u32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffff_ffff) break;
        return value;
      }
    }
    throw malformed("an integer is too long", this.at);
  }

  name(): string {
    const length = this.u32();
    const start = this.at;
    this.skip(length);
    return Buffer.from(this.#bytes.subarray(start, this.at)).toString("utf8");
  }

  /** Reads a length and that many items; a length that the bytes can't hold fails as soon as they run out. */
  vector(item: () => void): void {
    for (let left = this.u32(); left > 0; left--) item();
  }
}
