#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// Stripped and compiled sources are kept by Node between runs: most of a command's start is reading them.
enableCompileCache();

const { run } = await import("./program.ts");
const { processTerminal } = await import("./terminal.ts");

process.exitCode = await run(process.argv.slice(2), processTerminal());
