// A browser to test in: tabs with storage, network and clock of their own, in
// which no time passes but what a test lets pass.

import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { Tab } from "../semel.js";

export const ORIGIN = "https://bank.test";
export const PAYMENT = { amount: 1900, currency: "EUR" };

/** What the Go client and this one are both held against. */
export const outcomes = JSON.parse(readFileSync(new URL("../../semelclient/testdata/outcomes.json", import.meta.url), "utf8"));

/** Time and the services behind it. */
export class World {
  now = 0;
  /** What the wall clock shows at the beginning. */
  wall = Date.UTC(2026, 0, 1);
  #timers = [];
  #number = 0;

  /** The requests that arrived, but for the rules, which are counted in asked. */
  requests = [];
  asked = 0;

  /**
   * @param {Function[]} answers of the service, one for each request, the last one again and again
   */
  constructor(...answers) {
    this.answers = answers;
    this.rules = status(404);
  }

  setTimeout(run, ms = 0) {
    const timer = { at: this.now + Math.max(0, ms), number: ++this.#number, run };
    this.#timers.push(timer);
    return timer;
  }

  clearTimeout(timer) {
    this.#timers = this.#timers.filter((t) => t !== timer);
  }

  /** Lets everything run that needs no time. */
  async settle() {
    for (let i = 0; i < 3; i++) {
      await new Promise(setImmediate);
    }
  }

  /** Lets time pass. */
  async pass(ms) {
    const until = this.now + ms;
    for (;;) {
      await this.settle();
      const next = this.#timers.filter((t) => t.at <= until).sort((a, b) => a.at - b.at || a.number - b.number)[0];
      if (!next) {
        this.now = until;
        return;
      }
      this.now = next.at;
      this.clearTimeout(next);
      next.run();
    }
  }

  /** Lets time pass until the promise has its end, and returns that. */
  async until(promise) {
    let ended = false;
    const over = () => (ended = true);
    promise.then(over, over);
    for (;;) {
      await this.settle();
      if (ended) {
        return promise;
      }
      assert.ok(this.#timers.length > 0, "nothing is under way, and there is no end");
      await this.pass(Math.min(...this.#timers.map((t) => t.at)) - this.now);
    }
  }

  async fetch(url, init = {}) {
    if (url.endsWith("/.well-known/idempotency")) {
      this.asked++;
      return this.rules(url, init);
    }
    this.requests.push({ at: this.now, url, ...init, key: init.headers.get("Idempotency-Key") });
    const next = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    return next(url, init);
  }

  /** Opens a tab, with the storage of another if it is a duplicate or a reload. */
  open(storage = new FakeStorage(this)) {
    return new Page(this, storage);
  }

  /** All requests carried one key and one body, byte for byte. */
  same() {
    for (const r of this.requests) {
      const first = this.requests[0];
      assert.deepEqual([r.key, r.body, r.method, r.url], [first.key, first.body, first.method, first.url]);
    }
  }
}

/** One tab with a page in it. Its events are those of the window. */
class Page extends EventTarget {
  constructor(world, storage) {
    super();
    setMaxListeners(0, this);
    this.world = world;
    this.navigator = { onLine: true };
    this.location = { href: `${ORIGIN}/checkout` };
    this.crypto = globalThis.crypto ?? { getRandomValues: (bytes) => bytes.map(() => Math.random() * 256) };
    this.performance = { now: () => world.now };
    this.Date = { now: () => world.wall + world.now };
    this.fetch = (url, init) => (this.navigator.onLine ? world.fetch(url, init) : Promise.reject(new TypeError("Failed to fetch")));
    /** What timers threw: a browser writes it to the console. */
    this.thrown = [];
    this.setTimeout = (run, ms) => world.setTimeout(() => this.#caught(run), ms);
    this.clearTimeout = (timer) => world.clearTimeout(timer);
    this.sessionStorage = storage;
    this.tab = new Tab(this);
  }

  #caught(run) {
    try {
      run();
    } catch (error) {
      this.thrown.push(error.message);
    }
  }

  pay(options, body = PAYMENT) {
    return this.tab.intent("/payments", body, options);
  }

  /** Says what became of a payment, however long that takes. */
  paid(options, body) {
    return this.world.until(this.pay(options, body));
  }

  /** Makes one try and leaves it at that. */
  async tried(options) {
    const stop = new AbortController();
    const paying = this.pay({ ...options, signal: stop.signal });
    await this.world.settle();
    stop.abort();
    return paying;
  }

  online(is) {
    this.navigator.onLine = is;
    this.dispatchEvent(new Event(is ? "online" : "offline"));
  }

  /** The same tab with a page of its own: what was under way is gone. */
  reload() {
    return this.world.open(this.sessionStorage);
  }

  /** Another tab, whose storage begins as a copy of this one's. */
  duplicate() {
    return this.world.open(this.sessionStorage.copy());
  }
}

/** A storage that holds so many characters. */
export class FakeStorage {
  #items = new Map();
  room = 5_000_000;
  blocked = false;

  #use() {
    if (this.blocked) {
      throw new DOMException("The operation is insecure.", "SecurityError");
    }
    return this.#items;
  }

  get length() {
    return this.#use().size;
  }

  key(i) {
    return [...this.#use().keys()][i] ?? null;
  }

  getItem(name) {
    return this.#use().get(name) ?? null;
  }

  setItem(name, text) {
    const others = [...this.#use()].filter(([n]) => n !== name).reduce((sum, [n, v]) => sum + n.length + v.length, 0);
    if (others + name.length + text.length > this.room) {
      throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
    }
    this.#items.set(name, text);
  }

  removeItem(name) {
    this.#use().delete(name);
  }

  copy() {
    const copy = new FakeStorage();
    this.#items.forEach((text, name) => copy.setItem(name, text));
    return copy;
  }
}

/** Answers with a status. */
export function status(code, headers = {}, body = `status ${code}`) {
  return async () => reply(code, headers, body);
}

/** A response as fetch gives it where redirects are not followed. */
function reply(code, headers, body) {
  const hidden = code >= 300 && code < 400;
  return {
    status: hidden ? 0 : code, type: hidden ? "opaqueredirect" : "basic",
    headers: new Headers(hidden ? {} : headers),
    // As a browser decodes it, which takes a byte order mark off.
    text: async () => (hidden ? "" : new TextDecoder().decode(new TextEncoder().encode(body))),
  };
}

/** Takes the request and gives no answer. */
export const lost = async () => {
  throw new TypeError("Failed to fetch");
};

/** Takes the request and says nothing until the try is given up. */
export const silent = (_, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/** Takes the request, begins to answer, and breaks off. */
export const half = async () => ({
  ...reply(201, {}, ""),
  text: async () => {
    throw new TypeError("network error");
  },
});

/** Answers later. */
export const slow = (ms, world, answer) => (url, init) =>
  new Promise((resolve, reject) => {
    world.setTimeout(() => resolve(answer(url, init)), ms);
    init.signal.addEventListener("abort", () => reject(init.signal.reason));
  });

/** The answer that a case of the shared table gives. */
export const given = ({ lost: none, status: code, headers, body }) => (none ? lost : status(code, headers, body));
