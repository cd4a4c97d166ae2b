const mebibyte = 1024 * 1024;

/** What ended instances may have had before anybody looks: some 80 small ones. */
const lookedAtFrom = 96 * mebibyte;
/** How much more they may have had before it is looked at again. */
const lookedAtEvery = 32 * mebibyte;
/** What they may have had at most, however little of it the system backs. */
const mostUncollected = 256 * mebibyte;
/** What the process may have grown by before they are collected. */
const mostGrowth = 32 * mebibyte;

/**
 * Tells when the memory of ended instances is worth collecting. Its size says little: of a megabyte that a small guest has, the system backs the few pages that it touched. So from some size on
 * what decides is whether the process has really grown. A collection looks at the whole heap, and costs as much as a hundred short calls.
 */
export class GarbageGauge {
  readonly #residentBytes: () => number;
  #bytes = 0;
  #lookAt = lookedAtFrom;
  #residentBefore: number;

  constructor(residentBytes: () => number) {
    this.#residentBytes = residentBytes;
    this.#residentBefore = residentBytes();
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Asks the system only now and then, since that costs as well. */
  isDue(): boolean {
    if (this.#bytes < this.#lookAt) return false;
    if (this.#bytes >= mostUncollected || this.#residentBytes() - this.#residentBefore >= mostGrowth) return true;
    this.#lookAt = this.#bytes + lookedAtEvery;
    return false;
  }

  collected(): void {
    this.#bytes = 0;
    this.#lookAt = lookedAtFrom;
    this.#residentBefore = this.#residentBytes();
  }
}
