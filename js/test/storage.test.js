import assert from "node:assert/strict";
import { test } from "node:test";
import { PAYMENT, World, lost, silent, status } from "./world.js";

const order = { name: "order 17" };

/** Makes the call and says why it was refused. */
const refusal = async (promise) => {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.name, "IntentError");
    return error.code;
  }
  return assert.fail("it was not refused");
};

test("where no key can be kept nothing is sent, unless that is allowed", async () => {
  for (const spoil of [(storage) => (storage.blocked = true), (storage) => (storage.room = 100)]) {
    const world = new World(lost, status(201));
    const page = world.open();
    spoil(page.sessionStorage);
    assert.equal(await refusal(page.pay(order)), "intent_store");
    assert.equal(world.requests.length, 0);

    const got = await page.paid({ ...order, unkept: true });
    assert.deepEqual([got.outcome, got.tries], ["applied", 2]);
    const again = await page.paid({ ...order, unkept: true });
    assert.deepEqual([again.key, again.tries], [got.key, 0], "the page remembers what the tab cannot");
    world.same();
    await world.until(page.reload().pay({ ...order, unkept: true }));
    assert.notEqual(world.requests[2].key, got.key, "a reload does not");
  }
});

test("a tab that has no storage at all is refused like one whose storage is blocked", async () => {
  const world = new World(status(201));
  const page = world.open();
  page.sessionStorage = undefined;
  assert.equal(await refusal(page.pay(order)), "intent_store");
  assert.throws(() => page.tab.pending(), { code: "intent_store" });
  await assert.rejects(page.tab.resume(), { code: "intent_store" });
});

test("a full storage keeps what was applied without its reply, and the next call is told so", async () => {
  const world = new World(status(201, {}, "x".repeat(10_000)));
  const page = world.open();
  page.sessionStorage.room = 1000;
  const got = await page.paid(order);
  assert.deepEqual([got.outcome, got.body.length], ["applied", 10_000]);
  const again = await page.paid(order);
  assert.deepEqual([again.outcome, again.status, again.body, again.tries], ["applied", 201, "", 0]);
});

test("what was applied and cannot be written down stays open, and is asked again with its key", async () => {
  const world = new World();
  const page = world.open();
  world.answers = [async (...args) => {
    page.sessionStorage.room = 0;
    return status(201)(...args);
  }];
  assert.equal((await page.paid(order)).outcome, "applied");
  page.sessionStorage.room = 1000;
  assert.equal(page.tab.pending().length, 1);
  assert.equal((await world.until(page.reload().tab.resume()))[0].outcome, "applied");
  world.same();
});

test("a refusal that cannot be written down is not called one, since it may be sent again", async () => {
  const world = new World();
  const page = world.open();
  world.answers = [async (...args) => {
    page.sessionStorage.blocked = true;
    return status(402)(...args);
  }];
  const got = await page.paid(order);
  assert.deepEqual([got.outcome, got.reason, got.status], ["unknown", "store", 402]);
});

test("what was only put off is forgotten where there is no room to remember it", async () => {
  const world = new World();
  const page = world.open();
  world.answers = [async (...args) => {
    page.sessionStorage.room = 0;
    return status(429)(...args);
  }];
  assert.equal((await page.paid(order)).outcome, "not-applied");
  assert.equal(page.sessionStorage.length, 0);
});

test("what is kept and cannot be read is never sent, until it is forgotten", async () => {
  const world = new World(silent);
  const page = world.open();
  page.pay(order);
  await world.pass(1);
  const whole = JSON.parse(page.sessionStorage.getItem("semel:order 17"));
  const settled = { outcome: "applied", reason: "reply", status: 201, headers: [], body: "", at: 0 };
  for (const damaged of ["", "{", "null", "[]", ...[
    { version: 2 }, { key: 7 }, { key: "another" }, { body: {} }, { name: "order 18" }, { url: "nonsense" }, { line: '"a\nb' },
    { headers: [1] }, { headers: [["a b", "c"]] }, { created: null }, { settled: {} }, { settled: { ...settled, headers: [1] } },
    { settled: { ...settled, outcome: "unknown" } }, { settled: { ...settled, status: "201" } },
  ].map((change) => JSON.stringify({ ...whole, ...change }))]) {
    const next = page.duplicate();
    next.sessionStorage.setItem("semel:order 17", damaged);
    next.sessionStorage.setItem("basket", "{not ours");
    assert.equal(await refusal(next.pay(order)), "intent_damaged", damaged);
    assert.deepEqual(next.tab.pending(), []);
    next.tab.forget("order 17");
    assert.equal(next.sessionStorage.getItem("basket"), "{not ours", "what is not ours is left alone");
    world.answers = [status(201)];
    assert.equal((await next.paid(order)).outcome, "applied");
  }
});

test("what cannot be an intent is refused, and nothing is sent or kept", async () => {
  const world = new World(status(201));
  const page = world.open();
  const call = (url, body, options) => page.tab.intent(url, body, options);
  const circle = {};
  circle.itself = circle;
  for (const [what, promise] of Object.entries({
    "a GET": call("/payments", null, { method: "get" }),
    "a method with a blank": call("/payments", null, { method: "A B" }),
    "a URL that is none": call("http://", PAYMENT),
    "another scheme": call("ftp://bank.test/", PAYMENT),
    "a credential in the URL": call("https://me:secret@bank.test/", PAYMENT),
    "a fragment": call("/payments#top", PAYMENT),
    "a body that cannot be kept": call("/payments", new Blob(["x"])),
    "a form with files": call("/payments", new FormData()),
    "a number": call("/payments", 7),
    "bytes": call("/payments", new Uint8Array(1)),
    "a body that is too long": call("/payments", "é".repeat(1 << 19) + "x"),
    "a credential": call("/payments", PAYMENT, { headers: { authorization: "Bearer x" } }),
    "a cookie": call("/payments", PAYMENT, { headers: { Cookie: "a=b" } }),
    "a header that is none": call("/payments", PAYMENT, { headers: { "a b": "c" } }),
    "an empty name": call("/payments", PAYMENT, { name: "" }),
    "a name that is no string": call("/payments", PAYMENT, { name: 17 }),
    "a deadline of nothing": call("/payments", PAYMENT, { deadline: 0 }),
    "a deadline that is no number": call("/payments", PAYMENT, { deadline: "5000" }),
    "a deadline without end": call("/payments", PAYMENT, { deadline: Infinity }),
    "a deadline of a month": call("/payments", PAYMENT, { deadline: 30 * 86_400_000 }),
    "a timeout that is no number": call("/payments", PAYMENT, { attemptTimeout: "soon" }),
    "a timeout without end": call("/payments", PAYMENT, { attemptTimeout: Infinity }),
    "a timeout longer than a timer": call("/payments", PAYMENT, { attemptTimeout: 2 ** 31 }),
    "a retention that is no number": call("/payments", PAYMENT, { retention: "86400000" }),
    "an authorize that cannot be called": call("/payments", PAYMENT, { authorize: "Bearer x" }),
    "an observe that cannot be called": call("/payments", PAYMENT, { observe: true }),
    "options that are none": call("/payments", PAYMENT, null),
    "a method that is no string": call("/payments", PAYMENT, { method: 5 }),
    "a URL that is no string": call(Symbol("x"), PAYMENT),
    "a body with a BigInt": call("/payments", { amount: 1n }),
    "a body in a circle": call("/payments", circle),
    "a body that is no JSON": call("/payments", { toJSON() {} }),
    "an empty key": call("/payments", PAYMENT, { headers: { "Idempotency-Key": '""' } }),
    "a key that ends nowhere": call("/payments", PAYMENT, { headers: { "Idempotency-Key": '"a' } }),
    "a key with parameters": call("/payments", PAYMENT, { headers: { "Idempotency-Key": "a;b" } }),
    "a key with a backslash": call("/payments", PAYMENT, { headers: { "Idempotency-Key": "a\\b" } }),
    "a key with a blank": call("/payments", PAYMENT, { headers: { "Idempotency-Key": "a b" } }),
    "two keys": call("/payments", PAYMENT, { headers: [["Idempotency-Key", "a"], ["Idempotency-Key", "b"]] }),
    "a key that is too long": call("/payments", PAYMENT, { headers: { "Idempotency-Key": "k".repeat(256) } }),
  })) {
    assert.equal(await refusal(promise), "intent_invalid", what);
  }
  assert.equal(world.requests.length, 0);
  assert.equal(page.sessionStorage.length, 0);
});

test("a body goes out as it was given", async () => {
  for (const [body, text, type] of [
    ["<pay/>", "<pay/>", null],
    [{ b: 1, a: [2] }, '{"b":1,"a":[2]}', "application/json"],
    [[1], "[1]", "application/json"],
    [new URLSearchParams({ amount: "2 5" }), "amount=2+5", "application/x-www-form-urlencoded;charset=UTF-8"],
    [undefined, null, null],
  ]) {
    const world = new World(lost, status(201));
    await world.open().paid({ method: "put" }, body);
    const last = world.requests[1];
    assert.deepEqual([last.method, last.body, last.headers.get("Content-Type")], ["PUT", body === undefined ? JSON.stringify(PAYMENT) : text, body === undefined ? "application/json" : type]);
    world.same();
  }
  const world = new World(status(201));
  await world.until(world.open().tab.intent(new URL("https://bank.test/captures/7"), null, { headers: { "Content-Type": "text/plain" } }));
  assert.equal(world.requests[0].body, null);
});

test("what cannot be read keeps nothing else from being finished, and is told", async () => {
  const world = new World(lost);
  const page = world.open();
  const { key } = await page.tried(order);
  page.sessionStorage.setItem("semel:order 18", page.sessionStorage.getItem("semel:order 17").replace('"url":"https:', '"url":"'));
  world.answers = [status(201)];
  const next = page.reload();
  const [whole, damaged, ...more] = await world.until(next.tab.resume());
  assert.deepEqual([whole.outcome, whole.key, more], ["applied", key, []]);
  assert.deepEqual([damaged.outcome, damaged.reason, damaged.name, damaged.error.code], ["unknown", "store", "order 18", "intent_damaged"]);
  assert.throws(() => next.tab.known("order 18"), { code: "intent_damaged" });
});

test("resume refuses the options that intent refuses", async () => {
  const page = new World(status(201)).open();
  for (const options of [null, { deadline: Infinity }, { attemptTimeout: "5000" }]) {
    assert.equal(await refusal(page.tab.resume(options)), "intent_invalid");
  }
});

test("an intent that the tab had kept, and the page went on with, is forgotten in both", async () => {
  const world = new World(status(429));
  const page = world.open();
  const first = await page.paid({ ...order, deadline: 3000 });
  world.answers = [status(201)];
  page.sessionStorage.room = 0;
  const again = await page.paid({ ...order, unkept: true });
  assert.deepEqual([again.outcome, again.key], ["applied", first.key]);
  page.sessionStorage.room = 5e6;
  page.tab.forget("order 17");
  assert.equal(page.sessionStorage.length, 0);
  assert.notEqual((await page.paid(order)).key, first.key, "it is a second purchase");
});

test("an intent that only the page holds is forgotten where the storage is blocked", async () => {
  const world = new World(status(201));
  const page = world.open();
  page.sessionStorage.blocked = true;
  const { key } = await page.paid({ ...order, unkept: true });
  page.tab.forget("order 17");
  assert.notEqual((await page.paid({ ...order, unkept: true })).key, key);
});

test("a key is a UUIDv7: the time, and what no other tab draws", async () => {
  const world = new World(status(201));
  for (const wall of [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1), 0x0123456789ab]) {
    world.wall = wall;
    const { key } = await world.open().paid();
    assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(parseInt(key.replace("-", "").slice(0, 12), 16), wall + world.now);
  }
  assert.equal(new Set(world.requests.map((r) => r.key)).size, 3);
});
