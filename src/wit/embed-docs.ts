import { ByteReader } from "./byte-reader.ts";
import type { WitDocs } from "./docs.ts";
import { encodeDocs } from "./docs-section.ts";
import { ItemBudget } from "./item-budget.ts";
import { defaultDecodeLimits } from "./limits.ts";
import { readPreamble } from "./parse-component.ts";

/**
 * The component with these docs in a custom section `ambit-docs`, in place of any that it had. No other byte changes, and the same docs give the same
 * bytes. Throws `Invalid` as `decodeComponent` does where the bytes are no component; only its outermost sections are looked at.
 */
export const embedDocs = (bytes: Uint8Array, docs: WitDocs): Uint8Array => {
  const content = encodeDocs(docs);
  const name = new TextEncoder().encode("ambit-docs");
  const length = 1 + name.length + content.length;
  const head = [0, ...leb128(length), name.length];
  return concatenate([...withoutSections(bytes, "ambit-docs"), Uint8Array.from(head), name, content]);
};

/**
 * The component without its `package-docs` sections, which make jco and wasm-tools refuse a component wherever they name an interface (docs about a
 * root package that a component does not have). To be done after the component's digest was checked and before jco sees it.
 */
export const stripDocsSections = (bytes: Uint8Array): Uint8Array => {
  const kept = withoutSections(bytes, "package-docs");
  return kept.length === 1 ? bytes : concatenate(kept);
};

/** The bytes in as few runs as leaving out the custom sections of that name takes. */
const withoutSections = (bytes: Uint8Array, unwanted: string): Uint8Array[] => {
  const reader = new ByteReader(bytes, 0, bytes.length, defaultDecodeLimits.maxNameBytes);
  readPreamble(reader);
  const budget = new ItemBudget(defaultDecodeLimits);
  const kept: Uint8Array[] = [];
  let from = 0;
  while (!reader.done) {
    const start = reader.at;
    budget.spend(1, start);
    const id = reader.u8("a section");
    const section = reader.slice(reader.u32("the size of a section"), `section ${id}`);
    if (id !== 0 || section.name("the name of a custom section") !== unwanted) continue;
    if (start > from) kept.push(bytes.subarray(from, start));
    from = reader.at;
  }
  if (from < bytes.length) kept.push(bytes.subarray(from));
  return kept;
};

const leb128 = (value: number): number[] => {
  const bytes: number[] = [];
  let rest = value;
  do {
    const more = rest > 0x7f;
    bytes.push((rest & 0x7f) | (more ? 0x80 : 0));
    rest >>>= 7;
  } while (rest > 0);
  return bytes;
};

const concatenate = (parts: readonly Uint8Array[]): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};
