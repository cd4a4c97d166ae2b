import { Invalid } from "../api/errors.ts";

const broken = /function i32ToChar\(n\) \{\s*if \(!n \|\| typeof n !== 'number'\)[\s\S]*?return String\.fromCharCode\(n\);\s*\}/;

const exact = `function i32ToChar(n) {
    if (typeof n !== 'number' || n < 0 || n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) { throw new TypeError('not a valid char'); }
    return String.fromCodePoint(n);
  }`;

/**
 * jco's generated JavaScript with chars that come back from async functions as they are. jco 0.15 cuts them to 16 bits there (U+1F600 arrives as U+F600,
 * which nothing later can tell from a real U+F600) and refuses U+0000.
 *
 * Throws `Invalid` with code `ComponentUnsupported` where the code has that function in another form: better no component than wrong characters.
 */
export const withExactChars = (source: string): string => {
  if (!source.includes("function i32ToChar(")) return source;
  const repaired = source.replace(broken, () => exact);
  if (repaired === source)
    throw new Invalid("ComponentUnsupported", "jco's generated code converts characters in a way that is not known to be exact");
  return repaired;
};
