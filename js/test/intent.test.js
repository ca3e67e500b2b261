import assert from "node:assert/strict";
import { test } from "node:test";
import { PAYMENT, World, half, lost, silent, slow, status } from "./world.js";

const order = { name: "order 17" };
const rejects = (promise, code) => assert.rejects(promise, (error) => error.name === "IntentError" && error.code === code);

test("key and body are kept before the first byte leaves, and every try has both", async () => {
  const world = new World();
  const page = world.open();
  const keptAtSend = [];
  const keeps = (answer) => async (...args) => {
    const { key, body } = JSON.parse(page.sessionStorage.getItem("semel:order 17"));
    keptAtSend.push({ key: `"${key}"`, body });
    return answer(...args);
  };
  world.answers = [lost, status(503), half, status(201, {}, '{"id":"p1"}')].map(keeps);
  const got = await page.paid(order);
  assert.deepEqual(
    { ...got, headers: undefined, key: undefined },
    {
      outcome: "applied", reason: "reply", status: 201, body: '{"id":"p1"}', replayed: false, tries: 4,
      name: "order 17", error: null, headers: undefined, key: undefined,
    },
  );
  assert.equal(world.requests[0].key, `"${got.key}"`, "as a structured field string");
  assert.equal(world.requests[0].body, JSON.stringify(PAYMENT));
  assert.equal(world.requests[0].headers.get("Content-Type"), "application/json");
  assert.deepEqual(keptAtSend, world.requests.map(({ key, body }) => ({ key, body })));
  world.same();
});

test("two calls with one name are one intent, under way and afterwards", async () => {
  const world = new World();
  world.answers = [slow(500, world, status(201))];
  const page = world.open();
  const first = page.pay(order);
  const second = page.pay(order);
  assert.equal(first, second, "both get one promise");
  await world.until(first);
  assert.equal(world.requests.length, 1);
  const again = await page.paid(order);
  assert.deepEqual([again.outcome, again.status, again.body, again.tries, again.replayed], ["applied", 201, "status 201", 0, true]);
  assert.equal(world.requests.length, 1, "what was applied is told again, and not sent");
});

test("without a name the same request is the same intent", async () => {
  const world = new World(status(201));
  const page = world.open();
  const [a, b] = await Promise.all([page.paid(), page.paid()]);
  assert.equal(a.key, b.key);
  const other = await page.paid(undefined, { amount: 2000 });
  assert.notEqual(other.key, a.key, "another body is another");
  assert.equal(world.requests.length, 2);
});

test("a reload half-way: the page goes on with what is pending", async () => {
  const world = new World(silent);
  const page = world.open();
  page.pay(order);
  await world.pass(10);
  const loaded = page.reload();
  const [open, ...more] = loaded.tab.pending();
  assert.deepEqual([open.name, open.method, open.url, more.length], ["order 17", "POST", "https://bank.test/payments", 0]);
  world.answers = [status(201, { "Idempotent-Replayed": "true" })];
  const [got] = await world.until(loaded.tab.resume());
  assert.deepEqual([got.outcome, got.name, got.key, got.replayed], ["applied", "order 17", open.key, true]);
  world.same();
  assert.deepEqual(loaded.tab.pending(), []);
  assert.deepEqual(await loaded.tab.resume(), [], "there is nothing left to go on with");
});

test("a reload half-way, and a press instead of going on: the same key", async () => {
  const world = new World(silent);
  const page = world.open();
  page.pay(order);
  await world.pass(10);
  world.answers = [status(201)];
  const loaded = page.reload();
  const going = loaded.tab.resume();
  const got = await loaded.paid(order);
  assert.equal((await going)[0].key, got.key, "a press while the page goes on is the same intent");
  assert.equal(world.requests.length, 2);
  world.same();
});

test("what an earlier page sent has no known end: a refusal does not close it", async () => {
  const world = new World(silent);
  const page = world.open();
  page.pay(order);
  await world.pass(10);
  world.answers = [status(402)];
  const got = await page.reload().paid(order);
  assert.deepEqual([got.outcome, got.reason, got.tries], ["unknown", "refused", 2]);
});

test("a duplicated tab has the same key, and a tab opened anew has another", async () => {
  const world = new World(silent);
  const page = world.open();
  page.pay(order);
  await world.pass(10);
  const copy = page.duplicate();
  copy.pay(order);
  await world.pass(10);
  assert.equal(world.requests.length, 2);
  world.same();
  world.open().pay(order);
  await world.pass(10);
  assert.notEqual(world.requests[2].key, world.requests[0].key);
});

test("the back button after the payment: the page is told again, kept alive or loaded", async () => {
  const world = new World(status(201, { Location: "/payments/p1" }));
  const page = world.open();
  const first = await page.paid(order);
  for (const back of [page, page.reload()]) {
    const again = await back.paid(order);
    assert.deepEqual([again.outcome, again.key, again.tries], ["applied", first.key, 0]);
    assert.equal(again.headers.get("Location"), "/payments/p1");
  }
  assert.equal(world.requests.length, 1);
});

test("a new purchase of the same thing is a new intent: under its own name, or once forgotten", async () => {
  const world = new World(status(201));
  const page = world.open();
  const keys = [(await page.paid(order)).key, (await page.paid({ name: "order 18" })).key];
  page.tab.forget("order 17");
  keys.push((await page.paid(order)).key);
  assert.equal(new Set(keys).size, 3);
  assert.equal(world.requests.length, 3);
});

test("a name is remembered for a day, and a request without one for ten minutes", async () => {
  for (const [options, remembered] of [[order, 24 * 3600_000], [undefined, 600_000]]) {
    const world = new World(status(201));
    const page = world.open();
    const { key, name } = await page.paid(options);
    await world.pass(remembered);
    assert.equal((await page.paid(options)).key, key);
    await world.pass(1);
    await page.paid({ name: "another" }); // makes room
    assert.equal(page.sessionStorage.getItem(`semel:${name}`), null);
    assert.notEqual((await page.paid(options)).key, key);
    assert.equal(world.requests.length, 3);
  }
});

test("after a refusal the next call is a new intent, also with another body", async () => {
  const world = new World(status(402, { "Semel-Outcome": "executed" }), status(201));
  const page = world.open();
  const first = await page.paid(order);
  assert.equal(first.outcome, "not-applied");
  assert.equal(page.sessionStorage.length, 0, "a refusal leaves nothing behind");
  const second = await page.paid(order, { amount: 1, card: "other" });
  assert.equal(second.outcome, "applied");
  assert.notEqual(second.key, first.key);
});

test("what was only put off has the same key again, since a duplicated tab may have had it through", async () => {
  const world = new World(status(429));
  const page = world.open();
  const first = await page.paid(order);
  assert.deepEqual([first.outcome, first.reason], ["not-applied", "gave_up"]);
  assert.deepEqual(page.tab.pending(), [], "it is not open: nobody goes on with it unasked");
  world.answers = [status(400)];
  const second = await page.paid(order);
  assert.deepEqual([second.outcome, second.key], ["not-applied", first.key], "nothing of it is open");
  world.same();

  world.answers = [status(429)];
  const third = await page.paid(order);
  assert.notEqual(third.key, first.key);
  world.answers = [status(201)];
  const fourth = await page.paid(order, { amount: 1 });
  assert.notEqual(fourth.key, third.key, "another body has a key of its own");

  world.answers = [status(429)];
  const fifth = await page.paid({ name: "later" });
  await world.pass(3600_000);
  world.answers = [status(201)];
  assert.notEqual((await page.paid({ name: "later" })).key, fifth.key, "an old key is not used again");
});

test("another request under a name that is open, under way or applied is refused, and nothing is sent", async () => {
  const world = new World(silent);
  const page = world.open();
  const under = page.pay(order);
  await world.pass(10);
  await rejects(page.pay(order, { amount: 1 }), "intent_known");
  assert.throws(() => page.tab.forget("order 17"), { code: "intent_known" });
  await rejects(page.reload().pay(order, { amount: 1 }), "intent_known");
  await rejects(page.reload().tab.intent("/refunds", PAYMENT, order), "intent_known");
  world.answers = [status(201)];
  await world.until(under);
  const sent = world.requests.length;
  await rejects(page.pay(order, { amount: 1 }), "intent_known");
  assert.equal(world.requests.length, sent);
});

test("an intent that stays unknown is kept, and asked again with its key", async () => {
  const world = new World(lost);
  const page = world.open();
  const first = await page.paid({ ...order, deadline: 1000 });
  assert.deepEqual([first.outcome, first.reason, first.status], ["unknown", "gave_up", 0]);
  assert.ok(first.error instanceof TypeError);
  assert.equal(page.tab.pending()[0].key, first.key);
  world.answers = [status(201)];
  assert.equal((await page.paid(order)).outcome, "applied");
  world.same();
});

test("a signal ends it at once, with what is known", async () => {
  const gone = AbortSignal.abort();
  let world = new World(status(201));
  let got = await world.open().paid({ signal: gone });
  assert.deepEqual([got.outcome, got.tries], ["not-applied", 0], "nothing was sent");
  assert.equal(world.requests.length, 0);

  for (const [answer, outcome] of [[silent, "unknown"], [status(429, { "Retry-After": "60" }), "not-applied"], [lost, "unknown"]]) {
    world = new World(answer);
    const stop = new AbortController();
    const page = world.open();
    page.navigator.onLine = true;
    const paying = page.pay({ signal: stop.signal, authorize: () => ({}) });
    await world.pass(10);
    stop.abort();
    const at = world.now;
    got = await world.until(paying);
    assert.deepEqual([got.outcome, got.reason, world.now - at], [outcome, "gave_up", 0]);
  }
});

test("a credential that never comes does not outlive the deadline", async () => {
  const world = new World(status(201));
  const got = await world.open().paid({ deadline: 5000, authorize: () => new Promise(() => {}) });
  assert.deepEqual([got.outcome, got.tries, world.now], ["not-applied", 0, 5000]);
});

test("time is up after the deadline, and a wait that outlives it ends at once", async () => {
  let world = new World(lost);
  await world.open().paid({ deadline: 10_000 });
  assert.ok(world.now <= 10_000);
  for (const wait of ["3600", "99999999999999999999999999"]) {
    world = new World(status(503, { "Retry-After": wait }));
    const got = await world.open().paid();
    assert.deepEqual([got.outcome, got.status, world.now], ["unknown", 503, 0]);
  }
  world = new World(silent);
  const got = await world.open().paid({ deadline: 10_000 });
  assert.deepEqual([got.outcome, got.tries, world.now], ["unknown", 1, 10_000]);
});

test("a try that hangs is given up, and the next one asks", async () => {
  const world = new World(silent, status(201));
  const why = [];
  const got = await world.open().paid({ attemptTimeout: 2000, observe: ({ error }) => why.push(error?.message) });
  assert.deepEqual([got.outcome, got.tries], ["applied", 2]);
  assert.deepEqual(why, ["semel: the try took too long", undefined]);
  assert.ok(world.requests[1].at >= 2000 && world.requests[1].at <= 2050, "full jitter, 50 ms at most before the first retry");
  world.same();
});

test("twenty tries are the most, and the last may still be the end", async () => {
  for (const [last, outcome] of [[lost, "unknown"], [status(201), "applied"]]) {
    const world = new World(...Array(19).fill(lost), last);
    const got = await world.open().paid({ deadline: 3600_000 });
    assert.deepEqual([got.outcome, got.tries], [outcome, 20]);
  }
});

test("waits are drawn from nothing to a bound that doubles up to 20 s", async () => {
  for (const [answer, first] of [[lost, 50], [status(503), 1000]]) {
    const longest = Array(19).fill(0);
    const shortest = Array(19).fill(Infinity);
    for (let run = 0; run < 60; run++) {
      const world = new World(answer);
      await world.open().paid({ deadline: 3600_000 });
      for (let i = 0; i < 19; i++) {
        const waited = world.requests[i + 1].at - world.requests[i].at;
        longest[i] = Math.max(longest[i], waited);
        shortest[i] = Math.min(shortest[i], waited);
        assert.ok(waited <= Math.min(20_000, first * 2 ** i) + 1e-6, `wait ${i} is ${waited} ms`);
      }
    }
    for (let i = 0; i < 19; i++) {
      const middle = Math.min(20_000, first * 2 ** i) / 2;
      assert.ok(shortest[i] < middle && longest[i] > middle, `wait ${i} is between ${shortest[i]} and ${longest[i]} ms`);
    }
  }
});

test("without a network nothing is tried, and the key waits for the network", async () => {
  const world = new World(status(201));
  const page = world.open();
  page.online(false);
  const paying = page.pay(order);
  await world.pass(60_000);
  assert.equal(world.requests.length, 0);
  const { key } = page.tab.pending()[0];
  page.online(true);
  const got = await world.until(paying);
  assert.deepEqual([got.outcome, got.tries, got.key, world.now], ["applied", 1, key, 60_000]);
});

test("a network that does not come back in time: nothing was sent", async () => {
  const world = new World(status(201));
  const page = world.open();
  page.online(false);
  const got = await page.paid(order);
  assert.deepEqual([got.outcome, got.reason, got.tries, world.now], ["not-applied", "gave_up", 0, 120_000]);
  assert.match(got.error.message, /offline/);
});

test("a network that comes back ends the wait for it", async () => {
  const world = new World(lost);
  const page = world.open();
  const paying = page.pay(order);
  await world.pass(40_000);
  page.online(false);
  await world.pass(40_000);
  const tries = world.requests.length;
  world.answers = [status(201)];
  page.online(true);
  const got = await world.until(paying);
  assert.deepEqual([got.outcome, got.tries, world.now], ["applied", tries + 1, 80_000]);
});

test("a wait that the service has asked for is not cut short by the network", async () => {
  const world = new World(status(503, { "Retry-After": "30" }), status(201));
  const page = world.open();
  const paying = page.pay(order);
  await world.pass(1000);
  page.online(true);
  await world.until(paying);
  assert.ok(world.requests[1].at >= 30_000);
});

test("this machine is reached without a network", async () => {
  for (const host of ["localhost", "127.0.0.1:8420", "[::1]:80", "shop.localhost"]) {
    const world = new World(status(201));
    const page = world.open();
    page.navigator.onLine = false;
    page.fetch = (url, init) => world.fetch(url, init);
    assert.equal((await world.until(page.tab.intent(`http://${host}/payments`, {}))).outcome, "applied", host);
  }
  const world = new World(status(201));
  const page = world.open();
  page.navigator.onLine = false;
  assert.equal((await world.until(page.tab.intent("https://localhost.evil.test/", {}))).tries, 0);
});

test("a refused credential is renewed once, is not kept, and cannot change the key", async () => {
  const world = new World(status(401), status(503), status(401), status(201));
  const page = world.open();
  const asked = [];
  const authorize = async (renew) => {
    asked.push(renew);
    return { Authorization: `Bearer ${asked.length}`, "Idempotency-Key": '"mine"' };
  };
  const got = await page.paid({ ...order, authorize });
  assert.equal(got.outcome, "applied");
  assert.deepEqual(asked, [false, true, false, true]);
  assert.equal(world.requests[3].headers.get("Authorization"), "Bearer 4");
  assert.equal(world.requests[3].key, `"${got.key}"`);
  world.same();
  assert.doesNotMatch(page.sessionStorage.getItem("semel:order 17"), /Bearer|mine/);

  const refused = await new World(status(401)).open().paid({ authorize: () => ({}) });
  assert.deepEqual([refused.outcome, refused.tries], ["not-applied", 2], "one that is refused anew is not renewed again");
  const broken = new World(status(201));
  const never = await broken.open().paid({ deadline: 1000, authorize: () => Promise.reject(new Error("no login")) });
  assert.deepEqual([never.outcome, never.tries, broken.requests.length, never.error.message], ["not-applied", 0, 0, "no login"]);
});

test("a key of the caller's is sent as it was given", async () => {
  for (const [line, key] of [['"order 17"', "order 17"], ["K1", "K1"], ['"a\\"b"', 'a"b']]) {
    const world = new World(lost, status(201));
    const got = await world.open().paid({ headers: { "idempotency-key": line, "X-Shop": "1" } });
    assert.equal(got.key, key);
    assert.equal(world.requests[1].key, line);
    assert.equal(world.requests[1].headers.get("X-Shop"), "1");
    world.same();
  }
});

test("observe is told of each try, and what it throws changes nothing", async () => {
  const world = new World(lost, status(409, { "Semel-Outcome": "in-progress" }), status(201, { "Semel-Outcome": "replayed" }));
  const page = world.open();
  const seen = [];
  const { key } = await page.paid({
    ...order,
    observe: ({ error, duration, ...attempt }) => {
      seen.push({ ...attempt, failed: error !== null });
      throw new Error("the page's own");
    },
  });
  assert.deepEqual(seen, [
    { key, name: "order 17", resend: 0, status: 0, says: "", replayed: false, failed: true },
    { key, name: "order 17", resend: 1, status: 409, says: "in-progress", replayed: false, failed: false },
    { key, name: "order 17", resend: 2, status: 201, says: "replayed", replayed: true, failed: false },
  ]);
  await world.pass(1);
  assert.deepEqual(page.thrown, Array(3).fill("the page's own"), "it is not swallowed either");
});

test("requests go out as a page's own do, and no redirect is followed", async () => {
  const world = new World(status(201));
  await world.open().paid({ credentials: "include" });
  await world.open().paid();
  const [first, second] = world.requests;
  assert.deepEqual([first.credentials, second.credentials, first.redirect, first.cache], ["include", "same-origin", "manual", "no-store"]);
});

test("a step of the clock changes no wait, and an intent of the future is not sent blind", async () => {
  const world = new World(lost);
  const page = world.open();
  const paying = page.pay(order);
  await world.pass(10);
  world.wall += 30_000;
  const got = await world.until(paying);
  assert.equal(got.outcome, "unknown");
  assert.ok(world.now <= 120_000);
  world.wall -= 3 * 3600_000;
  const sent = world.requests.length;
  const old = await page.paid(order);
  assert.deepEqual([old.outcome, old.reason, old.tries, world.requests.length], ["unknown", "too_old", 0, sent]);
});

test("the rules of a service are asked for once by all, and again when they could not be read", async () => {
  const world = new World(lost);
  const page = world.open();
  await Promise.all([1, 2, 3].map((n) => page.tried({ name: `order ${n}` })));
  world.answers = [status(201)];
  world.rules = status(200, {}, '{"endpoints":[]}');
  world.now += 7200_000;
  await Promise.all(page.tab.pending().map(({ name }) => page.paid({ name })));
  assert.equal(world.asked, 1);
});

test("rules that semelclient would not read are none, and an intent is sent for all that", async () => {
  const read = (endpoints) => JSON.stringify({ endpoints });
  for (const [rules, sent] of [
    [read([null]), true],
    [read([5]), true],
    [read([[]]), true],
    [read({ length: 1 }), true],
    [read(null), true],
    ["null", true],
    [read([{ path: 5, retention: 3600 }]), true],
    [read([{ path: "/payments", methods: 5, retention: 3600 }]), true],
    [read([{ path: "/payments", methods: [5], retention: 3600 }]), true],
    [read([{ path: "/payments", retention: "3600" }]), true],
    [read([{ path: "/payments", retention: 3600.5 }]), true],
    ['{"endpoints":[{"path":"/payments","retention":1e99}]}', true],
    [read([null, { path: "/payments", methods: null, retention: 3600 }]), false],
    [read([{ retention: 3600 }]), false],
  ]) {
    const world = new World(lost);
    const page = world.open();
    await page.tried(order);
    await world.pass(3700_000);
    world.rules = status(200, {}, rules);
    world.answers = [status(201)];
    const got = await page.reload().paid(order);
    assert.deepEqual([got.outcome, got.reason], sent ? ["applied", "reply"] : ["unknown", "too_old"], rules);
  }
});

test("what is known of an intent is told without a request", async () => {
  const world = new World(lost);
  const page = world.open();
  assert.equal(page.tab.known("order 17"), null);
  const { key } = await page.tried(order);
  const open = page.reload().tab.known("order 17");
  assert.deepEqual([open.outcome, open.key, open.tries, open.replayed], ["unknown", key, 0, false]);
  world.answers = [status(201, { Location: "/payments/1" })];
  await page.paid(order);
  const paid = page.reload().tab.known("order 17");
  assert.deepEqual([paid.outcome, paid.key, paid.status, paid.headers.get("Location"), paid.body], ["applied", key, 201, "/payments/1", "status 201"]);
  assert.equal(world.requests.length, 2);
  world.now += 25 * 3600_000;
  assert.equal(page.tab.known("order 17"), null, "it is remembered for a day");
});

test("the longest times are those of a browser's timer", async () => {
  const world = new World(silent);
  const got = await world.open().paid({ deadline: 2 ** 31 - 1, attemptTimeout: 2 ** 31 - 1 });
  assert.deepEqual([got.tries, world.now], [1, 2 ** 31 - 1]);
});
