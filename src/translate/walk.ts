import type { WitType } from "../api/wit.ts";
import { isPlainVariant } from "../declaration/shape.ts";

/** More than any call needs: a megabyte of arguments has at most about half a million values. */
const mostSteps = 2_000_000;

type Variant = Extract<WitType, { kind: "variant" }>;

interface Named {
  readonly name: string;
}

/**
 * What one conversion has cost so far, and what it has looked up. A component's types may be as wide as its declaration allows and the arguments as
 * long, so their product has to be bounded too.
 */
export class Walk {
  readonly #tooMuch: () => Error;
  readonly #byName = new Map<readonly Named[], Map<string, Named>>();
  readonly #plain = new Map<Variant, boolean>();
  #left = mostSteps;

  constructor(tooMuch: () => Error) {
    this.#tooMuch = tooMuch;
  }

  /** As `isPlainVariant`, looked at once a type. */
  isPlain(type: Variant): boolean {
    const known = this.#plain.get(type);
    if (known !== undefined) return known;
    const isPlain = isPlainVariant(type);
    this.#plain.set(type, isPlain);
    return isPlain;
  }

  /** Throws once the conversion has taken more steps than it may. */
  step(count: number): void {
    this.#left -= count;
    if (this.#left < 0) throw this.#tooMuch();
  }

  /** The one that is called `name`, if there is one, in a time that doesn't depend on how many there are. */
  find<T extends Named>(all: readonly T[], name: unknown): T | undefined {
    if (typeof name !== "string") return undefined;
    if (all.length <= 8) return all.find((one) => one.name === name);
    let index = this.#byName.get(all);
    if (!index) {
      index = new Map(all.map((one) => [one.name, one]));
      this.#byName.set(all, index);
    }
    return index.get(name) as T | undefined;
  }
}
