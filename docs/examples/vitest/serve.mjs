// One server for the whole run, and an isolated sandbox for each test.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function setup({ provide }) {
  const ready = join(mkdtempSync(join(tmpdir(), "serve-")), "ready");
  const program = process.env.CONFORMANT ?? "conformant";
  const server = spawn(program, ["serve", "--ready-file", ready, "--exit-with-parent"], { stdio: "ignore" });
  for (let turn = 0; !existsSync(ready); turn += 1) {
    if (turn > 600 || server.exitCode !== null) throw new Error("serve does not begin");
    await new Promise((again) => setTimeout(again, 50));
  }
  provide("server", readFileSync(ready, "utf8").trim());
  return () => server.kill();
}

// The address of a new sandbox, and a function that scripts its responses.
export async function world(server, name) {
  const base = `${server}/_world/${name}`;
  const control = async (what, body = {}) => {
    const answer = await fetch(`${base}/_control/${what}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
  };
  await control("reset");
  return { base, script: (on, answer, calls = "1") => control("script", { on, answer, calls }) };
}
