#!/usr/bin/env node
// Runs the binary for this platform with the same arguments, streams and exit code.
"use strict";
const { spawnSync } = require("node:child_process");
const { existsSync } = require("node:fs");
const path = require("node:path");

const name = process.platform === "win32" ? "conformant.exe" : "conformant";
const program = path.join(__dirname, "..", "binaries", `${process.platform}-${process.arch}`, name);
if (!existsSync(program)) {
  console.error(`error: this package has no binary for ${process.platform}-${process.arch}: download a release, or run cargo install conformant`);
  process.exit(3);
}
const { status, signal, error } = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`error: ${error.message}`);
  process.exit(3);
}
// The binary was ended by a signal: end this process by the same signal.
if (signal) process.kill(process.pid, signal);
process.exit(status ?? 3);
