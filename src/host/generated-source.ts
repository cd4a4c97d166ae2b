import { Invalid } from "../api/errors.ts";

/**
 * The parameter that the generated `instantiate` gets besides jco's own: what guards lifting (`lifting-budget.ts`) and what replaces globals that
 * generated code would otherwise reach.
 */
const guardParameter = "ambit";

/**
 * jco's generated module, changed so that lifting is charged as it happens and an instance is cheaper to make. Every change must find what it replaces,
 * or the component is refused: a new jco that spells things differently must not quietly lose a guard.
 *
 * - Lists charge for their elements before the first is read; buffer copies and text decoding go through the guard. A guest may name one buffer a
 *   thousand times, so the size of its memory bounds nothing.
 * - What a guest passes to an import is charged anew for each import, as is the result.
 * - Text decoding is fatal and keeps a byte order mark, as the canonical ABI has it.
 * - A character is made of its whole code point; the code for asynchronous functions would cut it to 16 bits, and takes no NUL.
 * - Tracing is cut out (its arguments would be made for nothing), the console replaced, and modules compiled for each instance are compiled once.
 */
export const guardGeneratedSource = (source: string): string => {
  let guarded = replaceOne(
    source,
    "export function instantiate(getCoreModule, imports, instantiateCore = (module, importObject) => new WebAssembly.Instance(module, importObject)) {",
    `export function instantiate(getCoreModule, imports, instantiateCore, ${guardParameter}) {\nconst { TextDecoder, console } = ${guardParameter};`,
  );
  guarded = replaceOne(guarded, /const _debugLog = \(\.\.\.args\) => \{[^}]*\{ return; \}[^}]*\};/, "");
  guarded = guarded.replace(/(?<![\w.])_debugLog\(/g, "false && console.log(");
  guarded = replaceOne(
    guarded,
    /function _trackHostOperation\(operation\) \{/,
    `function _trackHostOperation(operation) {\n${guardParameter}.refill();`,
    { optional: !guarded.includes("_trackHostOperation(") },
  );
  guarded = guarded.replace(
    /for \((let|var) i = 0; i < (len\d*); i\+\+\) \{/g,
    `for ($1 i = ${guardParameter}.elements($2); i < $2; i++) {`,
  );
  guarded = guarded.replace(/(memory\d+)\.buffer\.slice\(/g, `${guardParameter}.slice($1.buffer, `);
  guarded = guarded
    .replaceAll("String.fromCharCode(", "String.fromCodePoint(")
    .replaceAll("if (!n || typeof n !== 'number')", "if (typeof n !== 'number')");
  guarded = hoistConstantModules(guarded);
  checkNothingUnguarded(guarded);
  return guarded;
};

/** How often the generated code instantiates each core module, by index. */
export const instantiationCounts = (source: string): Map<number, number> => {
  const counts = new Map<number, number>();
  for (const [, index] of source.matchAll(/instantiateCore\(module(\d+)/g)) {
    counts.set(Number(index), (counts.get(Number(index)) ?? 0) + 1);
  }
  return counts;
};

/** Names of the core modules in the order of the indices that `instantiationCounts` gives. */
export const coreModuleNames = (source: string): string[] =>
  [...source.matchAll(/const module\d+ = getCoreModule\('([^']+)'\);/g)].map(([, name]) => name ?? "");

/** Two tiny modules for suspending imports are spelled out in the generated code; compiling them for each instance costs more than all else it does. */
const hoistConstantModules = (source: string): string => {
  const hoisted: string[] = [];
  const rest = source.replace(
    /const (_conditionalSuspending\w+Module) = new WebAssembly\.Module\(new Uint8Array\(\[[^\]]*\]\)\);/g,
    (declaration) => {
      hoisted.push(declaration);
      return "";
    },
  );
  return `${hoisted.join("\n")}\n${rest}`;
};

const unguarded = [/\.buffer\.slice\(/, /for \((?:let|var) i = 0; i < len/, /new WebAssembly\.Module\((?![^;]*\]\)\);)/];

const checkNothingUnguarded = (source: string): void => {
  for (const pattern of unguarded) if (pattern.test(source.replaceAll(`${guardParameter}.slice(`, ""))) throw unexpected(String(pattern));
};

const replaceOne = (source: string, pattern: string | RegExp, replacement: string, options?: { optional: boolean }): string => {
  const replaced = source.replace(pattern, () => replacement);
  if (replaced === source && options?.optional !== true) throw unexpected(String(pattern));
  return replaced;
};

const unexpected = (what: string): Invalid =>
  new Invalid("ComponentUnsupported", `the code that jco generated for the component is not of the form expected: ${what}`);
