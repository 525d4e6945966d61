// What the client does when the service is busy. `IMPATIENT=1 vitest run` shows what a worse client would see.
import { expect, inject, test } from "vitest";
import { chat } from "./chat.mjs";
import { world } from "./serve.mjs";

test("a busy service is asked again", async () => {
  const { base, script } = await world(inject("server"), "busy");
  await script("chat/create-service", "429:1");
  const service = await chat(base).createService("Support");
  expect(service.friendly_name).toBe("Support");
  expect((await chat(base).services()).map((one) => one.sid)).toEqual([service.sid]);
});

test("a service that is away is waited for", async () => {
  const { base, script } = await world(inject("server"), "away");
  await script("chat/read-services", "503:1", "1-2");
  expect(await chat(base).services()).toEqual([]);
});
