import { parser } from "@prometheus-io/lezer-promql";

/** A series that an expression asks for: its name and the labels that it selects by. */
export interface AskedSeries {
  readonly name: string;
  readonly labels: readonly string[];
}

/** What an expression asks for, by Prometheus's own grammar. Throws where it is none. */
export const readPromQl = (expression: string): { readonly series: readonly AskedSeries[]; readonly grouping: readonly string[] } => {
  const series: AskedSeries[] = [];
  const grouping: string[] = [];
  let labels: string[] = [];
  parser.parse(expression).iterate({
    enter: ({ type, from, to, node }) => {
      const text = expression.slice(from, to);
      if (type.isError) throw new Error(`no PromQL at ${from}: ${expression}`);
      if (type.name === "VectorSelector") {
        labels = [];
        const name = node.getChild("Identifier");
        if (name) series.push({ name: expression.slice(name.from, name.to), labels });
      }
      if (type.name !== "LabelName") return;
      if (node.parent?.name === "GroupingLabels") grouping.push(text);
      else labels.push(text);
    },
  });
  return { series, grouping };
};
