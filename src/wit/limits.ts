/**
 * How much of a component is read before it is refused. Components come from anywhere, so every quantity that the input controls has a bound; the
 * defaults are thirty times and more what the largest components of today's toolchains need (Python's: 3,100 items, 1,300 steps, depth 8).
 */
export interface DecodeLimits {
  /** Size of the whole binary. Core modules are skipped unread, so this bounds nothing but the buffer. */
  readonly maxBytes: number;
  /** Sections, definitions, fields, cases, parameters and the like in the binary, counted together; and again those that come out of it. */
  readonly maxItems: number;
  /** Definitions evaluated while nested components are instantiated and instance types are opened, counted together. */
  readonly maxSteps: number;
  /** Nesting of components and types, lexical or by reference. */
  readonly maxDepth: number;
  /** Nodes of one type or function signature when everything it refers to is written out. */
  readonly maxTypeSize: number;
  /** Bytes of one name. */
  readonly maxNameBytes: number;
  /** Bytes of one section that carries docs. */
  readonly maxDocsBytes: number;
}

export const defaultDecodeLimits: DecodeLimits = {
  maxBytes: 256 * 1024 * 1024,
  maxItems: 100_000,
  maxSteps: 100_000,
  maxDepth: 100,
  maxTypeSize: 20_000,
  maxNameBytes: 1024,
  maxDocsBytes: 1024 * 1024,
};
