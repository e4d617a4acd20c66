#!/usr/bin/env node
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const packages = Object.keys(require("../package.json").optionalDependencies);

function fail(error, hint) {
  console.error(`error: ${error}`);
  console.error(`hint: ${hint}`);
  process.exit(1);
}

// The program is in the package of this platform, which npm installs beside this one.
function binary() {
  const platform = `${process.platform}-${process.arch}`;
  const name = packages.find((one) => one.endsWith(`/${platform}`));
  if (name === undefined) {
    const known = packages.map((one) => one.split("/")[1]).join(", ");
    const hint = process.platform === "win32" ? "use WSL, which is Linux" : "build it from source";
    fail(`there is no package of relay-mesh for ${platform}, only for ${known}`, hint);
  }
  try {
    return require.resolve(`${name}/bin/relay-mesh`);
  } catch {
    fail(`the package ${name}, which has the program for this machine, is not installed`,
      "install without --omit=optional and --no-optional, on the platform that runs it");
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
