import OpenAI from "openai";
// Outside of this repository: from "ambit/client".
import { AmbitClient } from "../../src/client/client.ts";

/**
 * An agent on OpenAI's Responses API: `node examples/agent-loops/openai-responses.ts "Which issues of octo/spoon are open?"`. With `SEARCH=1` its model finds
 * tools as it goes, instead of having all of them declared.
 */
const ambit = new AmbitClient({ url: process.env.AMBIT_URL ?? "http://127.0.0.1:7780", token: process.env.AMBIT_TOKEN ?? "triage-token" });
const model = new OpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const agent = ambit.conversation("openai-responses", { search: process.env.SEARCH === "1" ? "only" : false });
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: process.argv[2] ?? "Which issues of octo/spoon are open?" }];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await agent.tools();
  const turn = await model.responses.create({ model: process.env.MODEL ?? "gpt-5", tools, input });
  // What came out goes in again as it is; the SDK's types of the two differ in items that no function tool makes.
  input.push(...(turn.output as OpenAI.Responses.ResponseInput));
  if (turn.output_text) process.stdout.write(`${turn.output_text}\n`);
  if (!turn.output.some(({ type }) => type === "function_call")) break;
  input.push(...(await agent.answer(turn.output)));
}
