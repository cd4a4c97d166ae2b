/** Writes pieces of component binaries for tests, so that what is wrong in one can be seen. */
export const preamble: readonly number[] = [0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00];

export const u32 = (value: number): number[] => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...u32(Math.floor(value / 0x80))]);

/** The index of a type where a value type is expected: signed, so that it is told from the codes of primitives. */
export const typeIndex = (index: number): number[] =>
  index < 0x40 ? [index] : [(index & 0x7f) | 0x80, ...typeIndex(Math.floor(index / 0x80))];

export const text = (value: string): number[] => {
  const bytes = [...new TextEncoder().encode(value)];
  return [...u32(bytes.length), ...bytes];
};

export const vector = (items: readonly (readonly number[])[]): number[] => [...u32(items.length), ...items.flat()];

export const section = (id: number, content: readonly number[]): number[] => [id, ...u32(content.length), ...content];

export const types = (...items: readonly (readonly number[])[]): number[] => section(7, vector(items));

export const custom = (name: string, content: readonly number[] | string): number[] =>
  section(0, [...text(name), ...(typeof content === "string" ? new TextEncoder().encode(content) : content)]);

/** A function type without parameters that returns the type of that index. */
export const functionReturning = (type: number): number[] => [0x40, 0x00, 0x00, ...typeIndex(type)];

/** Imports a function of the given type and exports it, which makes it a function of the world without any code. */
export const passedOn = (name: string, type: number): number[] => [
  ...section(10, vector([[0x00, ...text(`import-${name}`), 0x01, ...u32(type)]])),
  ...section(11, vector([[0x00, ...text(name), 0x01, ...u32(0), 0x00]])),
];

export const component = (...sections: readonly (readonly number[])[]): Uint8Array => Uint8Array.from([...preamble, ...sections.flat()]);
