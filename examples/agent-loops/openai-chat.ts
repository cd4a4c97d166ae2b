import OpenAI from "openai";
// Outside of this repository: from "ambit/client".
import { AmbitClient } from "../../src/client/client.ts";

/**
 * An agent on OpenAI's Chat Completions API: `node examples/agent-loops/openai-chat.ts "Which issues of octo/spoon are open?"`. With `SEARCH=1` its model finds
 * tools as it goes, instead of having all of them declared.
 */
const ambit = new AmbitClient({ url: process.env.AMBIT_URL ?? "http://127.0.0.1:7780", token: process.env.AMBIT_TOKEN ?? "triage-token" });
const model = new OpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const agent = ambit.conversation("openai-chat", { search: process.env.SEARCH === "1" ? "only" : false });
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: "user", content: process.argv[2] ?? "Which issues of octo/spoon are open?" },
];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await agent.tools();
  const completion = await model.chat.completions.create({ model: process.env.MODEL ?? "gpt-5", tools, messages });
  const message = completion.choices[0]?.message;
  if (!message) break;
  messages.push(message);
  if (message.content) process.stdout.write(`${message.content}\n`);
  if (!message.tool_calls?.length) break;
  messages.push(...(await agent.answer(message.tool_calls)));
}
