/** One figure of a benchmark, with what it is held against. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** What we want, in the figure's unit; null where a figure only informs. */
  readonly aim: { readonly atMost: number } | { readonly atLeast: number } | null;
}

export const percentile = (samples: readonly number[], share: number): number => {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

/** Runs `work` one at a time and gives each run's milliseconds, after a warm-up that is not counted. */
export const oneAtATime = async (runs: number, warmUp: number, work: (run: number) => Promise<void>): Promise<number[]> => {
  for (let run = 0; run < warmUp; run++) await work(run);
  const samples: number[] = [];
  for (let run = 0; run < runs; run++) {
    const started = performance.now();
    await work(run);
    samples.push(performance.now() - started);
  }
  return samples;
};

/** Runs `work` with so many under way at once and gives how many ended a second. */
export const atOnce = async (runs: number, width: number, work: (run: number) => Promise<void>): Promise<number> => {
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < runs) await work(next++);
    }),
  );
  return (runs / (performance.now() - started)) * 1000;
};

export const meetsAim = ({ value, aim }: Figure): boolean | null => {
  if (aim === null) return null;
  return "atMost" in aim ? value <= aim.atMost : value >= aim.atLeast;
};

const rounded = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Math.round(value * 100) / 100);

/** A Markdown table, as the README shows it. */
export const figureTable = (figures: readonly Figure[]): string => {
  const rows = figures.map((figure) => {
    const { name, value, unit, aim } = figure;
    const wanted = aim === null ? "" : "atMost" in aim ? `≤ ${rounded(aim.atMost)} ${unit}` : `≥ ${rounded(aim.atLeast)} ${unit}`;
    return `| ${name} | ${rounded(value)} ${unit} | ${wanted} | ${{ true: "met", false: "**missed**", null: "" }[String(meetsAim(figure))]} |`;
  });
  return ["| what | measured | aim | |", "|---|---|---|---|", ...rows].join("\n");
};
