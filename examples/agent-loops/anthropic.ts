import Anthropic from "@anthropic-ai/sdk";
// Outside of this repository: from "ambit/client".
import { AmbitClient } from "../../src/client/client.ts";

/**
 * An agent on Anthropic's Messages API: `node examples/agent-loops/anthropic.ts "Which issues of octo/spoon are open?"`. With `SEARCH=1` its model finds
 * tools as it goes, instead of having all of them declared.
 */
const ambit = new AmbitClient({ url: process.env.AMBIT_URL ?? "http://127.0.0.1:7780", token: process.env.AMBIT_TOKEN ?? "triage-token" });
const model = new Anthropic({ baseURL: process.env.ANTHROPIC_BASE_URL });
const agent = ambit.conversation("anthropic", { search: process.env.SEARCH === "1" ? "only" : false });
/** A model that asks for tools more often than this in a row is going in circles. */
const mostTurns = 20;

const messages: Anthropic.MessageParam[] = [{ role: "user", content: process.argv[2] ?? "Which issues of octo/spoon are open?" }];
for (let turns = 0; turns < mostTurns; turns++) {
  const tools = await agent.tools();
  const turn = await model.messages.create({ model: process.env.MODEL ?? "claude-sonnet-5-5", max_tokens: 1024, tools, messages });
  messages.push({ role: "assistant", content: turn.content });
  for (const block of turn.content) if (block.type === "text") process.stdout.write(`${block.text}\n`);
  if (turn.stop_reason !== "tool_use") break;
  messages.push(await agent.answer(turn.content));
}
