#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// The same start as `main.ts`, under the name by which kubectl finds its plugins: `kubectl-ambit`.
enableCompileCache();

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

const { run } = await import("./program.ts");
const { kubectlProgram } = await import("./kubectl-program.ts");
const { processTerminal } = await import("./terminal.ts");

process.exitCode = await run(process.argv.slice(2), processTerminal(), kubectlProgram);
