/** What MCP's conformance suite runs as a client: has the test that runs the suite do it, at `CLIENT_CONTROL`. */
const body = JSON.stringify({ url: process.argv.at(-1), context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") });
const answer = await fetch(process.env.CLIENT_CONTROL ?? "", { method: "POST", body });
if (!answer.ok) throw new Error(await answer.text());
