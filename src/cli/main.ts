#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// Stripped and compiled sources are kept by Node between runs: most of a command's start is reading them.
enableCompileCache();

// A reader that has seen enough closes its end (`ambit draft … | head`). The command still does all of its work; what it says is lost, as was wished.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

const { run } = await import("./program.ts");
const { processTerminal } = await import("./terminal.ts");

process.exitCode = await run(process.argv.slice(2), processTerminal());
