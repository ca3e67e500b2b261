import assert from "node:assert/strict";
import { test } from "node:test";
import { World, lost, status } from "./world.js";

/** Lets many intents of one page begin over a minute, and counts what arrives in it. */
async function crowd(world, callers) {
  const page = world.open();
  const all = [];
  for (let i = 0; i < callers; i++) {
    all.push(page.pay({ name: `order ${i}` }));
    await world.pass(60_000 / callers);
  }
  return { page, all, inTheMinute: world.requests.filter(({ at }) => at < 60_000).length };
}

test("a service that is down is asked a fifth more often, by all of a page together", async () => {
  const { inTheMinute } = await crowd(new World(lost), 300);
  assert.ok(inTheMinute > 345 && inTheMinute <= 360, `${inTheMinute} requests of 300 callers`);
});

test("a crowd does not use its retries up at once", async () => {
  const world = new World(lost);
  const page = world.open();
  for (let i = 0; i < 300; i++) {
    page.pay({ name: `order ${i}` });
  }
  await world.pass(1000);
  assert.ok(world.requests.length <= 300 + 31, `${world.requests.length} requests in the first second`);
});

test("a caller alone may retry thirty times a minute, of any origin", async () => {
  const world = new World(lost);
  const page = world.open();
  for (const name of ["a", "b", "c", "d"]) {
    page.pay({ name });
  }
  await world.pass(59_000);
  assert.ok(world.requests.length <= 4 + 30, `${world.requests.length} requests`);
  const before = world.requests.length;
  world.until(page.tab.intent("https://other.test/", {})).catch(() => {});
  await world.pass(900);
  assert.ok(world.requests.length - before > 2, "another origin has a budget of its own");
});

test("retries that are answered cost nothing, and polling costs nothing", async () => {
  for (const [answer, each] of [[status(201), 50], [status(409, { "Retry-After": "1" }), 1150]]) {
    const world = new World(lost);
    const page = world.open();
    let tries = 0;
    for (let i = 0; i < 60; i++) {
      world.answers = [lost, answer, status(201)];
      tries += (await page.paid({ name: `order ${i}` })).tries;
    }
    assert.ok(tries >= 120, `${tries} tries`);
    assert.ok(world.now <= 60 * each, `somebody waited for the budget: ${world.now} ms`);
  }
});
