/** What a model sees of a conversation, whatever its provider's API calls it. */
export interface Conversation {
  readonly question: string;
  readonly tools: readonly string[];
  /** Each turn that the model called tools in. */
  readonly turns: readonly (readonly AnsweredCall[])[];
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

export interface AnsweredCall {
  readonly call: Pick<ToolCall, "id" | "name">;
  readonly answer: string;
}

export type Move = { readonly kind: "calls"; readonly calls: readonly ToolCall[] } | { readonly kind: "text"; readonly text: string };

/** A request that the real API would refuse with status 400. */
export class BadRequest extends Error {}

/**
 * What the model without a mind does: it asks for two lists at once, one of them of a repository that isn't there, and then says what it got. Where it knows
 * of no tool for that, it searches for one first.
 */
export const nextMove = ({ question, tools, turns }: Conversation): Move => {
  const id = (index: number): string => `call_${turns.length}_${index}`;
  const last = turns.at(-1);
  const hasListed = last?.some(({ call }) => call.name === "list_issues") ?? false;
  if (hasListed) return { kind: "text", text: `I was told: ${last?.map(({ answer }) => answer).join(" | ")}` };
  if (tools.includes("list_issues")) {
    const list = (repo: string, index: number): ToolCall => ({ id: id(index), name: "list_issues", arguments: { repo, state: "open" } });
    return { kind: "calls", calls: [list("octo/spoon", 0), list("octo/ladle", 1)] };
  }
  if (tools.includes("search_tools") && turns.length === 0) {
    return { kind: "calls", calls: [{ id: id(0), name: "search_tools", arguments: { query: question } }] };
  }
  return { kind: "text", text: `I have no tool for that, only ${tools.join(", ") || "none"}.` };
};

/** Pairs the calls of each turn with their answers. Throws `BadRequest` for a call without one and for an answer that belongs to no call, as providers do. */
export class Turns {
  readonly #turns: AnsweredCall[][] = [];
  #open = new Map<string, string>();
  #answered: AnsweredCall[] = [];

  /** The model's calls of one turn, by id. */
  called(calls: readonly Pick<ToolCall, "id" | "name">[]): void {
    this.#complete();
    this.#open = new Map(calls.map(({ id, name }) => [id, name]));
    this.#answered = [];
    if (calls.length > 0) this.#turns.push(this.#answered);
  }

  answered(id: string, answer: string): void {
    const name = this.#open.get(id);
    if (name === undefined) throw new BadRequest(`there is a result for ${id}, which is no open call`);
    if (answer === "") throw new BadRequest(`the result for ${id} is empty`);
    this.#open.delete(id);
    this.#answered.push({ call: { id, name }, answer });
  }

  get all(): readonly (readonly AnsweredCall[])[] {
    this.#complete();
    return this.#turns;
  }

  #complete(): void {
    if (this.#open.size > 0) throw new BadRequest(`there is no result for ${[...this.#open.keys()].join(", ")}`);
  }
}
