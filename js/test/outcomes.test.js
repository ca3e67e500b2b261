// The cases that the Go client is held against as well, in
// semelclient/outcomes_test.go: the two make the same of every answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PAYMENT, World, given, lost, outcomes, status } from "./world.js";

test("what each answer means", async () => {
  assert.ok(outcomes.answers.length > 50);
  for (const { name, answer, hidden, ...want } of outcomes.answers) {
    // A browser shows no script what a redirect is.
    const { first, after, tries, reason } = hidden ? { first: "unknown", after: "unknown", tries: 1, reason: "redirected" } : want;
    let world = new World(given(answer));
    let page = world.open();
    const got = await page.paid();
    assert.equal(got.outcome, first, name);
    assert.equal(got.reason, reason, name);
    assert.equal(got.tries, world.requests.length, `tries of ${name}`);
    if (tries > 0) {
      assert.equal(got.tries, tries, `requests of ${name}`);
    } else {
      assert.ok(got.tries > 3, `it is tried again: ${name}`);
    }
    world.same();
    assert.equal(page.tab.pending().length, got.outcome === "unknown" ? 1 : 0, `what stays open of ${name}`);

    world = new World(lost, given(answer));
    assert.equal((await world.open().paid()).outcome, after, `after a lost try, ${name}`);
    world.same();
  }
});

for (const { name, answers, ...want } of outcomes.courses) {
  test(name, async () => {
    const world = new World(...answers.map(given));
    const { outcome, reason, tries, replayed } = await world.open().paid();
    assert.deepEqual({ outcome, reason, tries, replayed }, want);
    world.same();
  });
}

test("what Retry-After asks for is waited, and a little more", async () => {
  for (const { name, retryAfter, date, wait } of outcomes.waits) {
    const headers = new Headers(date ? { Date: date } : {});
    retryAfter.forEach((value) => headers.append("Retry-After", value));
    const world = new World(status(503, headers), status(201));
    await world.open().paid();
    const waited = world.requests[1].at - world.requests[0].at;
    assert.ok(waited >= wait * 1000 && waited <= wait * 1000 + 1000, `${name}: waited ${waited} ms`);
  }
});

test("an intent is sent again while the service keeps its key, and not blind after that", async () => {
  for (const { name, status: code, document, age, sent, asked } of outcomes.rules) {
    const world = new World(lost);
    world.rules = status(code, {}, document);
    const page = world.open();
    await page.tried();
    assert.equal(world.requests.length, 1);
    world.now += age * 1000;
    world.answers = [status(201)];
    const got = await page.paid();
    assert.equal(world.asked > 0, asked, `the rules are asked for: ${name}`);
    assert.equal(got.outcome, sent ? "applied" : "unknown", name);
    assert.equal(world.requests.length, sent ? 2 : 1, name);
  }
});

test("which published rules are a request's own is told by its path and the pattern", async () => {
  for (const { pattern, path, covered } of outcomes.paths) {
    const world = new World(lost);
    world.rules = status(200, {}, JSON.stringify({
      endpoints: [{ methods: ["POST"], path: pattern, retention: 172800 }, { path: "/of/nobody", retention: 3600 }],
    }));
    const { tab } = world.open();
    const stop = new AbortController();
    const first = tab.intent(path, PAYMENT, { signal: stop.signal });
    await world.settle();
    stop.abort();
    await first;
    world.now += 7_200_000;
    world.answers = [status(201)];
    const { outcome } = await world.until(tab.intent(path, PAYMENT));
    assert.equal(outcome, covered ? "applied" : "unknown", `${path} of ${pattern}`);
  }
});
