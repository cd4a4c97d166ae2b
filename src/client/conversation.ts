import type { AmbitClient, DeclarationOptions, RequestOptions } from "./client.ts";
import type { ToolShapes, TurnAnswers, TurnFormat } from "./shapes.ts";

export interface ConversationOptions extends Omit<DeclarationOptions, "names"> {
  /** Its calls are counted together. */
  readonly session?: string;
}

/** Declarations that were found are kept up to this many: what was found first goes first. */
const mostFound = 64;

/**
 * One conversation with a model. With `search: "only"` the model has nothing but the search to begin with, and after that what it found.
 *
 *   const agent = ambit.conversation("anthropic", { search: "only" });
 *   const turn = await model.messages.create({ tools: await agent.tools(), messages, … });
 *   messages.push(await agent.answer(turn.content));
 */
export class Conversation<Format extends TurnFormat> {
  readonly #client: AmbitClient;
  readonly #format: Format;
  readonly #options: ConversationOptions;
  #found: readonly string[] = [];

  constructor(client: AmbitClient, format: Format, options: ConversationOptions) {
    this.#client = client;
    this.#format = format;
    this.#options = options;
  }

  /** What to declare in the next request. */
  async tools(options: RequestOptions = {}): Promise<ToolShapes[Format][]> {
    const { session: _, ...asked } = this.#options;
    const names = asked.search === "only" ? { names: this.#found } : {};
    return (await this.#client.declarations(this.#format, { ...asked, ...names }, options)).tools;
  }

  /** Answers what the model returned, as `AmbitClient.answer` does, and notes what it found. */
  async answer(turn: unknown, options: RequestOptions = {}): Promise<TurnAnswers[Format]> {
    const { session } = this.#options;
    const { answer, calls } = await this.#client.turn(this.#format, { turn, ...(session !== undefined && { session }) }, options);
    const found = calls.flatMap((call) => call.found ?? []);
    this.#found = [...new Set([...this.#found.filter((name) => !found.includes(name)), ...found])].slice(-mostFound);
    return answer;
  }
}
