/** The same numbers of [0, 1) for the same seed (a linear congruence modulo 2^32, Knuth's multiplier): a failure can be had again. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};
