#!/usr/bin/env node
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

function binary() {
  const name = `@relay-mesh/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/relay-mesh`);
  } catch {
    console.error(`error: relay-mesh has no program for this machine: the package ${name} is not installed`);
    console.error("hint: install without --omit=optional and --no-optional, on the platform that runs it");
    process.exit(1);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });

// What the launcher is sent, the program is sent. From a terminal both get Ctrl-C by themselves; the program decides.
const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH"];
for (const signal of forwarded) {
  process.on(signal, () => {
    const fromTerminal = (signal === "SIGINT" || signal === "SIGQUIT") && process.stdin.isTTY;
    if (!fromTerminal) child.kill(signal);
  });
}

child.on("error", (error) => {
  console.error(`error: relay-mesh could not be started: ${error.message}`);
  process.exit(1);
});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  // Ends as the program did. If the signal is ignored, its exit code in a shell stays.
  for (const name of forwarded) process.removeAllListeners(name);
  process.exitCode = 128 + constants.signals[signal];
  process.kill(process.pid, signal);
});
