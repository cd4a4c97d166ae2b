/** Wakes everyone who waits, once each. */
export class Bell {
  readonly #waiting = new Set<() => void>();

  readonly wait = (wake: () => void): (() => void) => {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  };

  ring(): void {
    for (const wake of [...this.#waiting]) {
      this.#waiting.delete(wake);
      wake();
    }
  }
}
