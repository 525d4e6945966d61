#!/usr/bin/env node
// Runs the program of this platform, with its arguments, streams and exit code.
"use strict";
const { spawnSync } = require("node:child_process");
const { existsSync } = require("node:fs");
const path = require("node:path");

const name = process.platform === "win32" ? "conformant.exe" : "conformant";
const program = path.join(__dirname, "..", "binaries", `${process.platform}-${process.arch}`, name);
if (!existsSync(program)) {
  console.error(`error: this package carries no program for ${process.platform}-${process.arch}; see the releases, or cargo install conformant`);
  process.exit(3);
}
const { status, signal, error } = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`error: ${error.message}`);
  process.exit(3);
}
// Ended by a signal: the same for who waits for us.
if (signal) process.kill(process.pid, signal);
process.exit(status ?? 3);
