import { Invalid } from "../api/errors.ts";
import { offsetText } from "./byte-reader.ts";
import type { DecodeLimits } from "./limits.ts";

/** Counts what has been read of one component, so that a small file cannot grow into a large tree of syntax. */
export class ItemBudget {
  readonly #limits: DecodeLimits;
  #spent = 0;

  constructor(limits: DecodeLimits) {
    this.#limits = limits;
  }

  spend(items: number, at: number): void {
    this.#spent += items;
    if (this.#spent > this.#limits.maxItems) {
      throw new Invalid("ComponentTooLarge", `the component defines more than the ${this.#limits.maxItems} items allowed`, offsetText(at));
    }
  }

  checkDepth(depth: number, at: number): void {
    if (depth > this.#limits.maxDepth) {
      throw new Invalid(
        "ComponentTooDeep",
        `components or types are nested deeper than the ${this.#limits.maxDepth} allowed`,
        offsetText(at),
      );
    }
  }
}
