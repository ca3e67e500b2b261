/**
 * Semel in the browser: a request that must take effect once, however often a
 * person clicks, reloads, goes back, or loses the network.
 *
 *     import { intent } from "/semel.js";
 *
 *     const result = await intent("/payments", { amount: 2500 }, { name: "order 17" });
 *
 * An intent has one key. It is drawn and kept in the tab's sessionStorage, with
 * the exact body, before the first byte leaves, and each try sends both again
 * unchanged, also after a reload. The result says "applied", "not-applied" or
 * "unknown"; no network makes the promise reject, because code that sees an error
 * sends a new key, and a new key is a second payment.
 *
 * What an answer means is the table of docs/client.md, and both this file and the
 * Go client are held against semelclient/testdata/outcomes.json. docs/browser.md
 * has the rules of names and storage, and what is not promised.
 *
 * No build step, no dependencies, nothing global. It begins nothing by itself.
 */

/** @typedef {"applied" | "not-applied" | "unknown"} Outcome */

/**
 * Why the outcome is what it is: the reasons of semelclient, by the same names.
 * @typedef {"reply" | "gave_up" | "too_old" | "final_error" | "reply_hidden" | "refused" | "key_reused" | "other_caller" | "redirected" | "unprotected" | "store"} Reason
 */

/**
 * What is known of an intent.
 * @typedef {object} Result
 * @property {Outcome} outcome "applied": it took effect. "not-applied": it did not, and will not under
 *   this key. "unknown": it may have, or may yet; never send it under another name.
 * @property {Reason} reason
 * @property {number} status of the last reply, 0 if there was none
 * @property {Headers} headers of the last reply, as far as the browser shows them
 * @property {string} body of the last reply
 * @property {boolean} replayed the work was done before: the reply is a kept one
 * @property {number} tries requests that this call handed to the network
 * @property {string} key
 * @property {string} name
 * @property {Error | null} error what stood in the way, for a log; it says nothing of the outcome
 */

/**
 * One try, when it has ended.
 * @typedef {object} Attempt
 * @property {string} key
 * @property {string} name
 * @property {number} resend 0 for the first try of a call, then 1, 2, …
 * @property {number} status of the reply, 0 if there was none
 * @property {string} says what the service says of the key: Semel-Outcome, "" if it says nothing or the browser does not show it
 * @property {boolean} replayed
 * @property {Error | null} error why there was no reply
 * @property {number} duration in milliseconds
 */

/**
 * How an intent is sent.
 * @typedef {object} SendOptions
 * @property {AbortSignal} [signal] ends the call at once, with what is known then; the request itself may arrive all the same
 * @property {number} [deadline] milliseconds for the whole call, at most 2147483647 (24 days); default two minutes
 * @property {number} [attemptTimeout] milliseconds for each try, its reply's body included, at most as many; default 30 seconds
 * @property {number} [retention] milliseconds the service keeps a key, where it publishes nothing; default a day
 * @property {RequestCredentials} [credentials] of fetch; default "same-origin"
 * @property {(renew: boolean) => HeadersInit | Promise<HeadersInit>} [authorize] headers for each try that are not kept,
 *   such as a credential; with true the last one was refused (401) and a new one is to be fetched
 * @property {(attempt: Attempt) => void} [observe] is told of each try
 */

/**
 * What is meant.
 * @typedef {object} IntentOptions
 * @property {string} [name] what is meant, in your words: the order's id. Two calls with one name are one intent.
 *   Default: method, URL and body.
 * @property {string} [method] default POST
 * @property {HeadersInit} [headers] kept with the intent, so no credentials. An Idempotency-Key among them is the key.
 * @property {boolean} [unkept] send even where sessionStorage cannot be used: a reload forgets the key then
 */

/**
 * An intent that is not settled.
 * @typedef {object} Pending
 * @property {string} name
 * @property {string} key
 * @property {string} method
 * @property {string} url
 * @property {Date} created
 */

/** Nothing was sent, for a reason that is no matter of the network. */
export class IntentError extends Error {
  /**
   * @param {"intent_invalid" | "intent_known" | "intent_store" | "intent_damaged"} code
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(`semel: ${message}`, { cause });
    this.name = "IntentError";
    /** The name to test for, as in semelclient. */
    this.code = code;
  }
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

// The numbers of semelclient.
const DEADLINE = 2 * MINUTE;
const ATTEMPT_TIMEOUT = 30 * SECOND;
const RETENTION = 24 * HOUR;
const MAX_BODY = 1 << 20;
const MAX_ATTEMPTS = 20;
const FIRST_WAIT = 50;
const FIRST_WAIT_THROTTLED = SECOND;
const MOST_WAIT = 20 * SECOND;
const FRESH_FOR = MINUTE; // no service forgets a key within it
const BLIND_FOR = HOUR; // how old an intent may be that is sent while the rules cannot be read
const AHEAD = MINUTE; // how far an intent's clock may be ahead of ours
const RULES_FOR = 5 * MINUTE;
const LONGEST = 2 ** 31 - 1; // a browser's timer for more fires at once

// How long a tab remembers what was applied. A name of the application's means
// one thing for ever, so only room is a reason to forget it. Without one, the same
// request later on may be a second purchase.
const REMEMBERED_NAMED = 24 * HOUR;
const REMEMBERED_UNNAMED = 10 * MINUTE;

const KEY_HEADER = "Idempotency-Key";
const WELL_KNOWN = "/.well-known/idempotency";
const PREFIX = "semel:";

// ---------------------------------------------------------------------------
// What an answer means: semelclient/verdict.go

/**
 * A whole answer to one try.
 * @typedef {object} Reply
 * @property {number} status
 * @property {boolean} hidden a redirect, of which a browser shows nothing
 * @property {Headers} headers
 * @property {string} body
 * @property {{code: string, retry: boolean, originalStatus: number, reason: string} | null} problem
 */

/**
 * What one try says, read alone.
 * @typedef {object} Verdict
 * @property {"stop" | "again" | "poll" | "renew" | "confirm"} act what comes next. poll: the service works on it.
 *   confirm: a refusal that does not say whose it is, to be looked at once more.
 * @property {Outcome} outcome
 * @property {Reason} reason
 * @property {boolean} open it may have taken effect, or may yet
 * @property {boolean} certain the outcome holds for the intent, whatever became of earlier tries
 */

/**
 * @param {Partial<Verdict>} v
 * @returns {Verdict}
 */
const verdict = (v) => ({ act: "stop", outcome: "unknown", reason: "gave_up", open: false, certain: false, ...v });

/** @param {number} status */
const isDone = (status) => status >= 200 && status < 300;

// Statuses that say by their meaning that nothing was done.
const transient = [408, 421, 425, 429, 503];

/** @param {Reply} r */
function judge(r) {
  switch (says(r)) {
    case "executed":
    case "replayed":
      return code(r) === "reply-not-kept" ? judgeHidden(r) : judgeKept(r.status);
    case "reply-not-kept":
      return judgeHidden(r);
    case "in-progress":
      return verdict({ act: "poll", open: true });
    case "unknown":
      return verdict({ act: "again", open: true });
    case "key-reused":
      return judgeReused(r);
    case "released":
      return judgeReleased(r);
    case "unprotected":
      return judgeUnprotected(r.status);
  }
  return isReplay(r) ? judgeKept(r.status) : judgeStatus(r);
}

/**
 * The reply that is kept for the key is final, whatever it is.
 * @param {number} status
 */
function judgeKept(status) {
  if (status >= 200 && status < 400) {
    return verdict({ outcome: "applied", reason: "reply", certain: true });
  }
  if (status >= 400 && status < 500) {
    return verdict({ outcome: "not-applied", reason: "reply", certain: true });
  }
  return verdict({ reason: "final_error", open: true });
}

/**
 * The request is done, and its reply cannot be shown.
 * @param {Reply} r
 */
function judgeHidden(r) {
  return r.problem?.originalStatus ? judgeKept(r.problem.originalStatus) : verdict({ reason: "reply_hidden", open: true });
}

/**
 * The key is refused: this try did not run.
 * @param {Reply} r
 */
function judgeReused(r) {
  if (r.problem?.reason === "unknown-policy") {
    return verdict({ reason: "key_reused", open: true });
  }
  return verdict({ outcome: "not-applied", reason: code(r) === "other-caller" ? "other_caller" : "key_reused" });
}

/**
 * The try is known to have had no effect.
 * @param {Reply} r
 */
function judgeReleased(r) {
  if (r.status === 401) {
    return verdict({ act: "renew", outcome: "not-applied", reason: "refused" });
  }
  if (mayAgain(r) || (!code(r) && (transient.includes(r.status) || r.status >= 500))) {
    return verdict({ act: "again", outcome: "not-applied" });
  }
  return verdict({ outcome: "not-applied", reason: "refused" });
}

/**
 * The service did not look at the key: it cannot be asked again.
 * @param {number} status
 */
function judgeUnprotected(status) {
  if (isDone(status)) {
    return verdict({ outcome: "applied", reason: "reply", certain: true });
  }
  if (status >= 400 && status < 500) {
    return verdict({ outcome: "not-applied", reason: "refused" });
  }
  return verdict({ reason: "unprotected", open: true });
}

/**
 * The service says nothing of keys.
 * @param {Reply} r
 */
function judgeStatus(r) {
  const s = r.status;
  if (isDone(s)) {
    return verdict({ outcome: "applied", reason: "reply", certain: true });
  }
  if (r.hidden || s < 400) {
    return verdict({ reason: "redirected", open: true }); // a login page, or done: it does not say
  }
  if (s >= 500 || s === 499) {
    const final = mayNever(r) || s === 501 || s === 505;
    return final ? verdict({ reason: "refused", open: true }) : verdict({ act: "again", open: true });
  }
  if (s === 401) {
    return verdict({ act: "renew", outcome: "not-applied", reason: "refused" });
  }
  if (transient.includes(s) && !mayNever(r)) {
    return verdict({ act: "again", outcome: "not-applied" });
  }
  if ([409, 422, 423].includes(s) && !mayNever(r) && (mayAgain(r) || r.headers.get("Retry-After"))) {
    return verdict({ act: "poll", open: true });
  }
  return verdict({ act: "confirm", outcome: "not-applied", reason: "refused" });
}

const OUTCOMES = ["executed", "replayed", "in-progress", "key-reused", "unknown", "released", "reply-not-kept", "unprotected"];

/**
 * What Semel's header says, and else the code of its problem: a gateway may drop the
 * header, and a browser shows it only if told to.
 * @param {Reply} r
 */
function says(r) {
  const said = r.headers.get("Semel-Outcome") ?? "";
  return OUTCOMES.includes(said) ? said : codeSays(r);
}

/**
 * What each of Semel's own problems says became of the try; where that can be more
 * than one thing, the one that claims least. semelclient/problem.go has the same.
 * @type {Map<string, string>}
 */
const saysOfCode = new Map([
  ["key-missing", "released"],
  ["key-invalid", "released"],
  ["key-reused", "key-reused"],
  ["in-progress", "in-progress"],
  ["outcome-unknown", "unknown"],
  ["reply-not-kept", "reply-not-kept"],
  ["reply-not-acceptable", "reply-not-kept"],
  ["replay-refused", "reply-not-kept"],
  ["other-caller", "key-reused"],
  ["scope-missing", "released"],
  ["token-invalid", "released"],
  ["auth-unavailable", "unknown"],
  ["body-too-large", "released"],
  ["body-timeout", "released"],
  ["body-incomplete", "released"],
  ["upgrade-refused", "released"],
  ["store-unavailable", "unknown"],
  ["overloaded", "unknown"],
  ["still-running", "unknown"],
  ["commit-refused", "unknown"],
  ["step-unsettled", "unknown"],
  ["upstream-unknown", "unknown"],
]);

/**
 * What the code of the problem says, or "". A 5xx that says that nothing was done
 * is not believed: Semel's do not say it by their code.
 * @param {Reply} r
 */
function codeSays(r) {
  const said = saysOfCode.get(code(r)) ?? "";
  return r.status < 400 || (r.status >= 500 && (said === "released" || said === "key-reused")) ? "" : said;
}

/** @param {Reply} r */
const code = (r) => r.problem?.code ?? "";

/** @param {Reply} r */
const isReplay = (r) => r.headers.get("Idempotent-Replayed")?.toLowerCase() === "true" || says(r) === "replayed";

/**
 * Whether a header by which Stripe or Adyen speak of retries has that value.
 * @param {Reply} r
 * @param {string} value
 */
const vendorSays = (r, value) =>
  ["Stripe-Should-Retry", "Transient-Error"].some((name) => r.headers.get(name)?.toLowerCase() === value);

/**
 * The same key may be sent again.
 * @param {Reply} r
 */
function mayAgain(r) {
  if (r.problem?.code && says(r)) {
    return r.problem.retry;
  }
  return vendorSays(r, "true");
}

/**
 * It may not.
 * @param {Reply} r
 */
function mayNever(r) {
  if (r.problem?.code && says(r)) {
    return !r.problem.retry;
  }
  return vendorSays(r, "false");
}

/**
 * Problem details (RFC 9457), if the body is that: an object in JSON, of that media
 * type whatever its parameters. A member counts if it has its exact name and its
 * type, and is ignored otherwise (section 3.1).
 * @param {Headers} headers
 * @param {string} body
 * @returns {Reply["problem"]}
 */
function problemOf(headers, body) {
  if (!/^application\/problem\+json[ \t]*(;|$)/i.test(headers.get("Content-Type") ?? "")) {
    return null;
  }
  let read;
  try {
    read = JSON.parse(body);
  } catch {
    return null;
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) {
    return null;
  }
  const { code, retry, originalStatus, reason } = read;
  return {
    code: typeof code === "string" ? code : "",
    retry: retry === true,
    originalStatus: Number.isInteger(originalStatus) && originalStatus >= 200 && originalStatus <= 599 ? originalStatus : 0,
    reason: typeof reason === "string" ? reason : "",
  };
}

/**
 * What Retry-After asks for, in either form (RFC 9110 section 10.2.3), in
 * milliseconds; 0 if it asks for nothing or cannot be read. A date counts from the
 * reply's own Date: this machine's clock does not matter.
 * @param {Headers} headers
 */
function retryAfter(headers) {
  const value = (headers.get("Retry-After") ?? "").trim();
  if (/^[0-9]+$/.test(value)) {
    return Number(value) * SECOND;
  }
  const wait = httpDate(value) - httpDate(headers.get("Date") ?? "");
  return wait > 0 ? wait : 0; // NaN is not
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DATES = [
  /^[A-Z][a-z]{2}, (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^[A-Z][a-z]+day, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
];

/**
 * The moment of an HTTP date in one of its three forms, or NaN.
 * @param {string} text
 */
function httpDate(text) {
  for (const form of DATES) {
    const found = form.exec(text)?.groups;
    if (found) {
      const [year, day] = [Number(found.year), Number(found.day)];
      const full = found.year.length === 4 ? year : year + (year < 69 ? 2000 : 1900);
      const [h, m, s] = found.time.split(":").map(Number);
      const at = new Date(Date.UTC(full, MONTHS.indexOf(found.month), day, h, m, s));
      // What overflows is no date.
      return at.getUTCDate() === day && MONTHS[at.getUTCMonth()] === found.month && h < 24 && m < 60 && s < 60 ? at.getTime() : NaN;
    }
  }
  return NaN;
}

// ---------------------------------------------------------------------------
// What comes next: semelclient/course.go and semelclient/retry

/** What is known of an intent in the course of one call. It decides and does nothing itself. */
class Course {
  /**
   * @param {boolean} open an earlier try has no known end
   * @param {boolean} mayRenew a refused credential can be renewed
   */
  constructor(open, mayRenew) {
    this.open = open;
    this.mayRenew = mayRenew;
    this.tries = 0; // begun, whether or not they left
    this.failures = 0; // in a row, which the waits grow with
    this.confirmed = false;
    this.renewed = false;
  }

  /**
   * @param {Verdict} v
   * @returns {{done: boolean, outcome: Outcome, reason: Reason, backoff: number, budgeted: boolean, renew: boolean}}
   */
  next(v) {
    const { renewed } = this;
    this.tries++;
    this.renewed = false;
    this.open ||= v.open;
    const stop = { done: true, outcome: this.#holds(v), reason: v.reason, backoff: 0, budgeted: false, renew: false };
    /** @type {typeof stop} */
    const onward = { ...stop, done: false, outcome: this.known(), reason: "gave_up" };
    if (this.tries >= MAX_ATTEMPTS) {
      return v.act === "again" || v.act === "poll" ? { ...onward, done: true } : stop;
    }
    switch (v.act) {
      case "renew":
        this.renewed = this.mayRenew && !renewed;
        return this.renewed ? { ...onward, renew: true } : stop;
      case "confirm":
        if (!this.open || this.confirmed) {
          return stop;
        }
        this.confirmed = true;
        return { ...onward, backoff: ++this.failures, budgeted: true };
      case "poll":
        return { ...onward, backoff: ++this.failures };
      case "again":
        return { ...onward, backoff: ++this.failures, budgeted: true };
    }
    return stop;
  }

  /**
   * What v says, as far as it holds for the intent.
   * @param {Verdict} v
   * @returns {Outcome}
   */
  #holds(v) {
    return v.outcome === "not-applied" && !v.certain && this.open ? "unknown" : v.outcome;
  }

  /**
   * What is known where there is no more time.
   * @returns {Outcome}
   */
  known() {
    return this.open ? "unknown" : "not-applied";
  }
}

/**
 * The wait before retry n, which counts from 1: any moment up to a bound that
 * doubles. The cap comes before the jitter, so that late waits differ as well.
 * @param {number} n
 * @param {boolean} throttled
 */
const backoff = (n, throttled) =>
  Math.random() * Math.min(MOST_WAIT, (throttled ? FIRST_WAIT_THROTTLED : FIRST_WAIT) * 2 ** (n - 1));

/**
 * Counts requests and retries of one origin. Of any minute it allows a fifth as
 * many retries as there were requests, and never fewer than 30, spread over the
 * minute. A retry that was answered is given back.
 */
class Budget {
  static RATIO = 0.2;
  static RESERVE = 30;

  /** @param {() => number} elapsed */
  constructor(elapsed) {
    this.elapsed = elapsed;
    /** @type {number[]} */
    this.requests = [];
    /** @type {number[]} */
    this.retries = [];
    this.tokens = Budget.RESERVE;
    this.filled = elapsed();
  }

  request() {
    const now = this.#now();
    this.requests.push(now);
  }

  /** Whether a request may be sent again now; it counts if so. */
  retry() {
    const now = this.#now();
    if (this.tokens < 1 || this.retries.length >= this.#allowed()) {
      return false;
    }
    this.tokens--;
    this.retries.push(now);
    return true;
  }

  /** Gives back a retry that the origin has answered: it is up. */
  answered() {
    this.#now();
    if (this.retries.pop() !== undefined) {
      this.tokens = Math.min(this.tokens + 1, Budget.RESERVE);
    }
  }

  #allowed() {
    return Math.max(Budget.RESERVE, Math.floor(Budget.RATIO * this.requests.length));
  }

  /** Forgets what is more than a minute ago, and fills the bucket. */
  #now() {
    const now = this.elapsed();
    this.requests = this.requests.filter((at) => now - at < MINUTE);
    this.retries = this.retries.filter((at) => now - at < MINUTE);
    this.tokens = Math.min(this.tokens + (this.#allowed() * (now - this.filled)) / MINUTE, Budget.RESERVE);
    this.filled = now;
    return now;
  }
}

// ---------------------------------------------------------------------------
// How long a service keeps a key: semelclient/rules.go

/** @typedef {{methods?: string[], path?: string, retention?: number}} Endpoint */

/**
 * Whether a request is one of the endpoint, whose path is a pattern of Go's
 * net/http: {name} stands for a segment, {name...} and a slash at the end for the
 * rest.
 * @param {Endpoint} e
 * @param {string} method
 * @param {string} path
 */
function covers(e, method, path) {
  if (e.methods?.length && !e.methods.includes(method)) {
    return false;
  }
  const pattern = (e.path ?? "").split("/");
  const segments = path.split("/");
  for (const [i, p] of pattern.entries()) {
    const last = i === pattern.length - 1;
    if (last && (p === "" || p === "{$}" || p.endsWith("...}"))) {
      return i < segments.length && (p !== "{$}" || (segments[i] === "" && i === segments.length - 1));
    }
    if (i >= segments.length) {
      return false;
    }
    const isName = p.startsWith("{") && p.endsWith("}");
    if (isName ? segments[i] === "" : p !== segments[i]) {
      return false;
    }
  }
  return pattern.length === segments.length;
}

/**
 * The shortest retention of the endpoints that count, in milliseconds, or
 * undefined.
 * @param {Endpoint[]} endpoints
 * @param {(e: Endpoint) => boolean} counts
 */
function shortest(endpoints, counts) {
  const all = endpoints.filter((e) => Number(e.retention) > 0 && counts(e)).map((e) => Number(e.retention) * SECOND);
  return all.length > 0 ? Math.min(...all) : undefined;
}

// ---------------------------------------------------------------------------
// Intents

/**
 * What a call asks for.
 * @typedef {object} Request
 * @property {string} name
 * @property {boolean} named the name is the application's
 * @property {string} method
 * @property {string} url
 * @property {[string, string][]} headers
 * @property {string | null} body
 * @property {string | null} line the key's header line, where the caller gives it
 */

/**
 * An intent as it is kept.
 * @typedef {Omit<Request, "line"> & {version: 1, key: string, line: string, created: number, settled: Settlement | null}} Kept
 */

/**
 * How an intent ended.
 * @typedef {object} Settlement
 * @property {Outcome} outcome
 * @property {Reason} reason
 * @property {number} status
 * @property {[string, string][]} headers
 * @property {string} body
 * @property {number} at
 */

/**
 * @param {Request | Kept} a
 * @param {Request | Kept} b
 */
const same = (a, b) => a.method === b.method && a.url === b.url && a.body === b.body;

const CREDENTIALS = ["Authorization", "Proxy-Authorization", "Cookie"];
const READS = ["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"];

/**
 * @param {string} message
 * @param {unknown} [cause]
 */
const invalid = (message, cause) => new IntentError("intent_invalid", message, cause);

/**
 * The body as it is sent, and its media type if it says one.
 * @param {unknown} body
 * @returns {{text: string | null, media?: string}}
 */
function bodyOf(body) {
  if (body === null || body === undefined) {
    return { text: null };
  }
  if (typeof body === "string") {
    return { text: body };
  }
  if (body instanceof URLSearchParams) {
    return { text: body.toString(), media: "application/x-www-form-urlencoded;charset=UTF-8" };
  }
  const plain = Array.isArray(body) || [Object.prototype, null].includes(Object.getPrototypeOf(body));
  if (typeof body === "object" && plain) {
    return { text: jsonOf(body), media: "application/json" };
  }
  throw invalid("the body is to be kept byte for byte: a string, a URLSearchParams, or an object for JSON");
}

/** @param {object} body */
function jsonOf(body) {
  let text;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    throw invalid("the body cannot be written as JSON", error);
  }
  if (text === undefined) {
    throw invalid("the body's toJSON gives nothing that could be sent");
  }
  return text;
}

/**
 * How an intent is sent, if it can be sent like that.
 * @template {SendOptions} T
 * @param {T} options
 * @returns {T}
 */
function checked(options) {
  if (typeof options !== "object" || options === null) {
    throw invalid("the options are to be an object");
  }
  for (const [field, most] of /** @type {const} */ ([["deadline", LONGEST], ["attemptTimeout", LONGEST], ["retention", Infinity]])) {
    const ms = options[field];
    if (ms !== undefined && !(typeof ms === "number" && ms > 0 && ms <= most)) {
      throw invalid(`${field} is to be a number of milliseconds above 0${most < Infinity ? ` and at most ${most}` : ""}, and is ${typeof ms === "number" ? ms : "none"}`);
    }
  }
  for (const field of /** @type {const} */ (["authorize", "observe"])) {
    if (options[field] !== undefined && typeof options[field] !== "function") {
      throw invalid(`${field} is to be a function`);
    }
  }
  return options;
}

/**
 * The key in a header line that the caller gives: a string of RFC 9651, or bare.
 * @param {string} line
 */
function keyIn(line) {
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(line);
  const key = quoted ? quoted[1].replace(/\\(.)/g, "$1") : line;
  if (key.length < 1 || key.length > 255 || (!quoted && !/^[!#-+\--:<-[\]-~]+$/.test(line))) {
    throw invalid(`the ${KEY_HEADER} given is no key of 1 to 255 characters in quotes`);
  }
  return key;
}

/**
 * The promise's value, or undefined once the signal has aborted.
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} signal
 * @returns {Promise<T | undefined>}
 */
function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal.aborted) {
      stop();
    }
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/**
 * The intents of one tab. A page needs none of its own: the functions of this
 * module are those of the one it is in. Tests give it a window of theirs.
 */
export class Tab {
  #window;
  /** @type {Map<string, {request: Request | Kept, promise: Promise<Result>}>} */
  #running = new Map();
  /** @type {Map<string, Budget>} */
  #budgets = new Map();
  /** @type {Map<string, {at: number, failed: boolean, endpoints: Promise<Endpoint[]>}>} */
  #rules = new Map();
  /** @type {Map<string, string>} what sessionStorage did not take */
  #unkept = new Map();

  /** @param {Window & typeof globalThis} [window] */
  constructor(window = globalThis.window ?? globalThis) {
    this.#window = window;
  }

  /**
   * Sends a request that must take effect once, until it is known whether it
   * did or time is up. It never rejects for what the network does. It rejects with
   * an IntentError, and nothing was sent, if the request cannot be an intent
   * (intent_invalid), if the name has another request that is open or has taken
   * effect (intent_known), or if the key cannot be kept (intent_store,
   * intent_damaged).
   *
   * Asked again under the same name, also after a reload, it is the same intent:
   * while one is under way both get its promise, one that is open is sent again with
   * its key, and one that was applied is told again and not sent. After "not-applied"
   * the next call is a new intent.
   * @param {string | URL} url
   * @param {unknown} [body] a string as it is, an object as JSON, a URLSearchParams as a form
   * @param {IntentOptions & SendOptions} [options]
   * @returns {Promise<Result>}
   */
  intent(url, body, options = {}) {
    try {
      const request = this.#request(url, body, checked(options));
      const under = this.#running.get(request.name);
      if (!under) {
        return this.#begin(request, options, () => this.#take(request, options));
      }
      if (!same(under.request, request)) {
        throw this.#known(request.name, "is under way with another request");
      }
      return under.promise;
    } catch (error) {
      return Promise.reject(error instanceof IntentError ? error : invalid("the request cannot be read", error));
    }
  }

  /**
   * The intents of this tab that are not settled: those that a reload interrupted,
   * and those that ended as unknown.
   * @returns {Pending[]}
   */
  pending() {
    return this.#all()
      .whole.filter((kept) => !kept.settled)
      .map(({ name, key, method, url, created }) => ({ name, key, method, url, created: new Date(created) }));
  }

  /**
   * What this tab knows of an intent, and sends nothing: the result if it is
   * settled, "unknown" while it is open, null if nothing is kept under the name. A
   * page shows it when it has loaded. It throws an IntentError where the storage
   * cannot be used (intent_store) or what is kept cannot be read (intent_damaged).
   * @param {string} name
   * @returns {Result | null}
   */
  known(name) {
    this.#prune();
    const kept = this.#read(name);
    return kept && this.#told(kept, kept.settled ?? OPEN);
  }

  /**
   * Goes on with all that is pending, each with its key, as a page does when it
   * has loaded. What is kept and cannot be read is not sent: it is among the
   * results as "unknown", with an IntentError (intent_damaged). It rejects where
   * sessionStorage cannot be used (intent_store), and for options that cannot be
   * used (intent_invalid).
   * @param {SendOptions} [options]
   * @returns {Promise<Result[]>}
   */
  async resume(options = {}) {
    checked(options);
    const { whole, damaged } = this.#all();
    const goOn = (/** @type {Kept} */ kept) =>
      this.#running.get(kept.name)?.promise ?? this.#begin(kept, options, () => ({ kept, open: true }));
    return Promise.all([
      ...whole.filter((kept) => !kept.settled).map(goOn),
      ...damaged.map((name) => ({ ...this.#told({ name, key: "" }, { ...OPEN, reason: "store" }), error: damage(name) })),
    ]);
  }

  /**
   * Forgets an intent. The next call with that name is a new one, with a new key:
   * for buying the same again, and for one that stayed unknown, once you know what
   * became of it.
   * @param {string} name
   */
  forget(name) {
    if (this.#running.has(name)) {
      throw this.#known(name, "is under way");
    }
    this.#remove(name);
  }

  /**
   * Runs an intent, as the one of its name.
   * @param {Request | Kept} request
   * @param {SendOptions} options
   * @param {() => {kept: Kept, open: boolean}} take
   */
  #begin(request, options, take) {
    const run = async () => {
      const { kept, open } = take();
      if (kept.settled) {
        return this.#told(kept, kept.settled);
      }
      return new Call(this.#window, this.#shared(kept), kept, open, options).run((settled) => this.#settle(kept, settled));
    };
    const promise = run().finally(() => this.#running.delete(request.name));
    this.#running.set(request.name, { request, promise });
    return promise;
  }

  /**
   * What calls share: the budget of the origin, and the rules it publishes.
   * @param {Kept} kept
   */
  #shared(kept) {
    const { origin } = new URL(kept.url);
    const budget = this.#budgets.get(origin) ?? new Budget(() => this.#window.performance.now());
    this.#budgets.set(origin, budget);
    return { budget, endpoints: () => this.#endpoints(origin) };
  }

  /**
   * @param {string | URL} url
   * @param {unknown} body
   * @param {IntentOptions & SendOptions} options
   * @returns {Request}
   */
  #request(url, body, options) {
    const method = (options.method ?? "POST").toUpperCase();
    if (READS.includes(method) || !/^[!#-'*+.^_`|~0-9A-Z-]+$/.test(method)) {
      throw invalid(`${method} cannot be an intent: ask without a key`);
    }
    let target;
    try {
      target = new URL(url, this.#window.location?.href);
    } catch (error) {
      throw invalid(`the URL ${url} cannot be read`, error);
    }
    if (!/^https?:$/.test(target.protocol) || target.username || target.password || target.hash) {
      throw invalid("the URL has to be one of http or https, without a credential, which would be kept, and without a fragment");
    }
    const { text, media } = bodyOf(body);
    if (text !== null && new TextEncoder().encode(text).length > MAX_BODY) {
      throw invalid(`the body is longer than ${MAX_BODY} bytes`);
    }
    const headers = this.#headers(options.headers, media);
    const line = headers.get(KEY_HEADER);
    headers.delete(KEY_HEADER);
    if (line !== null) {
      keyIn(line);
    }
    const { name = `${method} ${target.href} ${text ?? ""}` } = options;
    if (typeof name !== "string" || name === "") {
      throw invalid("the name is to be a string that says what is meant");
    }
    return { name, named: options.name !== undefined, method, url: target.href, headers: [...headers], body: text, line };
  }

  /**
   * @param {HeadersInit | undefined} given
   * @param {string | undefined} media
   */
  #headers(given, media) {
    let headers;
    try {
      headers = new Headers(given);
    } catch (error) {
      throw invalid("the headers cannot be read", error);
    }
    const credential = CREDENTIALS.find((name) => headers.has(name));
    if (credential) {
      throw invalid(`the header ${credential} is a credential, and an intent is kept: return it from authorize`);
    }
    if (media && !headers.has("Content-Type")) {
      headers.set("Content-Type", media);
    }
    return headers;
  }

  /**
   * The intent that a request is: the one that its name has, or a new one, which
   * is kept before anything is sent.
   * @param {Request} request
   * @param {IntentOptions} options
   * @returns {{kept: Kept, open: boolean}}
   */
  #take(request, options) {
    this.#prune();
    const known = this.#read(request.name, options.unkept);
    const fits = known && same(known, request);
    if (known && known.settled?.outcome !== "not-applied") {
      if (!fits) {
        throw this.#known(request.name, known.settled ? "has taken effect with another request" : "is open with another request");
      }
      return { kept: known, open: true };
    }
    if (known && fits && this.#window.Date.now() - known.created < BLIND_FOR) {
      // It was put off, and got no answer. The same key, since one may be had in a
      // duplicated tab.
      known.settled = null;
      this.#write(known, options.unkept);
      return { kept: known, open: false };
    }
    const { line, ...rest } = request;
    const own = line ?? `"${this.#draw()}"`;
    /** @type {Kept} */
    const kept = { version: 1, ...rest, key: keyIn(own), line: own, created: this.#window.Date.now(), settled: null };
    this.#write(kept, options.unkept);
    return { kept, open: false };
  }

  /** A UUIDv7 (RFC 9562 section 5.7), as semelclient draws: the time in milliseconds, and 74 random bits. */
  #draw() {
    const { crypto, Date } = this.#window;
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const now = Date.now();
    for (let i = 0; i < 6; i++) {
      bytes[i] = now / 256 ** (5 - i); // of which a byte keeps the lowest eight bits
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  /**
   * Keeps how an intent ended, and returns whether that could be done. What was
   * applied is remembered, without its body if there is no room for that, and a key
   * that was only put off may be needed again. What else was not applied is over.
   * @param {Kept} kept
   * @param {Settlement} settled
   */
  #settle(kept, settled) {
    const keep = (/** @type {Settlement} */ s) => () => this.#write({ ...kept, settled: s }, this.#unkept.has(kept.name));
    const drop = () => this.#remove(kept.name);
    const ways = [];
    if (settled.outcome === "applied" || settled.reason === "gave_up") {
      ways.push(keep(settled), keep({ ...settled, headers: [], body: "" }));
    }
    if (settled.outcome !== "applied") {
      ways.push(drop);
    }
    return ways.some((way) => {
      try {
        way();
        return true;
      } catch {
        return false;
      }
    });
  }

  /**
   * What is known without a request.
   * @param {Pick<Kept, "key" | "name">} kept
   * @param {Settlement} settled
   * @returns {Result}
   */
  #told({ key, name }, { outcome, reason, status, headers, body }) {
    const replayed = outcome === "applied";
    return { outcome, reason, status, body, headers: new Headers(headers), replayed, tries: 0, key, name, error: null };
  }

  // The tab's storage.

  /**
   * @param {string} name
   * @param {string} what
   */
  #known(name, what) {
    return new IntentError("intent_known", `the intent ${JSON.stringify(name)} ${what}; nothing was sent`);
  }

  /**
   * @template T
   * @param {(storage: Storage) => T} use
   * @returns {T}
   */
  #stored(use) {
    try {
      return use(this.#window.sessionStorage);
    } catch (error) {
      throw new IntentError("intent_store", "sessionStorage cannot be used, so no key can be kept; nothing was sent", error);
    }
  }

  /**
   * @param {string} name
   * @param {boolean} [unkept]
   * @returns {Kept | null}
   */
  #read(name, unkept) {
    let text = this.#unkept.get(name) ?? null;
    try {
      text ??= this.#stored((storage) => storage.getItem(PREFIX + name));
    } catch (error) {
      if (!unkept) {
        throw error;
      }
    }
    if (text === null) {
      return null;
    }
    const kept = parse(name, text);
    if (!kept) {
      throw damage(name);
    }
    return kept;
  }

  /**
   * @param {Kept} kept
   * @param {boolean} [unkept]
   */
  #write(kept, unkept) {
    const text = JSON.stringify(kept);
    try {
      this.#stored((storage) => storage.setItem(PREFIX + kept.name, text));
      this.#unkept.delete(kept.name);
    } catch (error) {
      if (!unkept) {
        throw error;
      }
      this.#unkept.set(kept.name, text);
    }
  }

  /**
   * Removes an intent from both places: the page may have gone on with one that the
   * tab had kept before.
   * @param {string} name
   */
  #remove(name) {
    try {
      this.#stored((storage) => storage.removeItem(PREFIX + name));
    } catch (error) {
      if (!this.#unkept.has(name)) {
        throw error;
      }
    }
    this.#unkept.delete(name);
  }

  /**
   * All intents that can be read, and the names of those that cannot. What the page
   * holds is newer than what the tab does.
   * @returns {{whole: Kept[], damaged: string[]}}
   */
  #all() {
    const texts = this.#stored((storage) =>
      Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? "")
        .filter((key) => key.startsWith(PREFIX))
        .map((key) => /** @type {const} */ ([key.slice(PREFIX.length), storage.getItem(key) ?? ""])),
    );
    const read = [...new Map([...texts, ...this.#unkept])].map(([name, text]) => ({ name, kept: parse(name, text) }));
    return {
      whole: read.map(({ kept }) => kept).filter((kept) => kept !== null),
      damaged: read.filter(({ kept }) => kept === null).map(({ name }) => name),
    };
  }

  /**
   * Whether an intent was settled so long ago that its name may mean another.
   * @param {Kept} kept
   */
  #isPast({ named, settled }) {
    return settled !== null && this.#window.Date.now() - settled.at > (named ? REMEMBERED_NAMED : REMEMBERED_UNNAMED);
  }

  /** Makes room: forgets what is past. */
  #prune() {
    try {
      this.#all().whole.filter((kept) => this.#isPast(kept)).forEach(({ name }) => this.#remove(name));
    } catch {
      // Whoever reads or writes next says so.
    }
  }

  /**
   * What an origin publishes of its endpoints, which may be nothing. Of many
   * callers one asks.
   * @param {string} origin
   */
  #endpoints(origin) {
    const now = this.#window.performance.now();
    const known = this.#rules.get(origin);
    if (known && now - known.at < (known.failed ? SECOND : RULES_FOR)) {
      return known.endpoints;
    }
    const asked = { at: now, failed: false, endpoints: this.#ask(origin) };
    asked.endpoints.catch(() => (asked.failed = true));
    this.#rules.set(origin, asked);
    return asked.endpoints;
  }

  /**
   * @param {string} origin
   * @returns {Promise<Endpoint[]>}
   */
  async #ask(origin) {
    const timeout = new AbortController();
    const timer = this.#window.setTimeout(() => timeout.abort(), ATTEMPT_TIMEOUT);
    try {
      const response = await this.#window.fetch(origin + WELL_KNOWN, { signal: timeout.signal });
      const body = await response.text();
      if (response.status >= 500 || transient.includes(response.status)) {
        throw new Error(`semel: the rules of ${origin} cannot be read: ${response.status}`);
      }
      return response.status === 200 ? endpointsIn(body) : [];
    } finally {
      this.#window.clearTimeout(timer);
    }
  }
}

/**
 * The endpoints that a document publishes. One that semelclient would not read
 * publishes none.
 * @param {string} body
 * @returns {Endpoint[]}
 */
function endpointsIn(body) {
  try {
    const endpoints = JSON.parse(body).endpoints ?? [];
    return Array.isArray(endpoints) && endpoints.every(isEndpoint) ? endpoints.filter((e) => e !== null) : [];
  } catch {
    return [];
  }
}

/** @param {unknown} e */
function isEndpoint(e) {
  if (typeof e !== "object" || Array.isArray(e)) {
    return false;
  }
  const { methods, path, retention } = /** @type {Record<string, unknown>} */ (e ?? {});
  const isNumber = Number.isInteger(retention ?? 0) && Math.abs(Number(retention ?? 0)) < 2 ** 63;
  return Array.isArray(methods ?? []) && areStrings(...(/** @type {unknown[]} */ (methods ?? []))) && areStrings(path ?? "") && isNumber;
}

/** @param {string} name */
const damage = (name) =>
  new IntentError("intent_damaged", `what is kept of the intent ${JSON.stringify(name)} cannot be read; nothing was sent`);

/**
 * What is known of an intent that is open.
 * @type {Settlement}
 */
const OPEN = { outcome: "unknown", reason: "gave_up", status: 0, headers: [], body: "", at: 0 };

/** @param {unknown[]} values */
const areStrings = (...values) => values.every((v) => typeof v === "string");

/**
 * The intent that was kept under a name, or null if that is not what this is. What
 * is read is sent, so nothing is taken on trust.
 * @param {string} name
 * @param {string} text
 * @returns {Kept | null}
 */
function parse(name, text) {
  try {
    const kept = JSON.parse(text);
    const { body, headers, settled = null } = kept;
    new URL(kept.url); // this and the next throw for what cannot be sent
    new Headers(headers);
    const whole = kept.version === 1 && kept.name === name && areStrings(kept.method, kept.url) && keyIn(kept.line) === kept.key &&
      (body === null || areStrings(body)) && Array.isArray(headers) && Number.isFinite(kept.created) &&
      (settled === null || isSettlement(settled));
    return whole ? { ...kept, settled } : null;
  } catch {
    return null;
  }
}

/** @param {Settlement} s */
function isSettlement(s) {
  new Headers(s.headers);
  return ["applied", "not-applied"].includes(s.outcome) && areStrings(s.reason, s.body) && Array.isArray(s.headers) &&
    Number.isInteger(s.status) && Number.isFinite(s.at);
}

/** One call: an intent is sent until there is an end or no time is left. semelclient/run.go */
class Call {
  /**
   * @param {Window & typeof globalThis} window
   * @param {{budget: Budget, endpoints: () => Promise<Endpoint[]>}} shared
   * @param {Kept} kept
   * @param {boolean} open
   * @param {SendOptions} options
   */
  constructor(window, shared, kept, open, options) {
    this.window = window;
    this.shared = shared;
    this.kept = kept;
    this.options = options;
    this.course = new Course(open, options.authorize !== undefined);
    this.end = new AbortController();
    this.deadline = window.performance.now() + (options.deadline ?? DEADLINE);
    this.tries = 0;
    /** @type {Reply | null} */
    this.last = null;
    /** @type {Error | null} */
    this.error = null;
  }

  /** @param {(settled: Settlement) => boolean} settle */
  async run(settle) {
    const { signal } = this.options;
    const stop = () => this.end.abort();
    const timer = this.window.setTimeout(stop, this.deadline - this.window.performance.now());
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) {
      stop();
    }
    try {
      return this.#ended(await this.#send(), settle);
    } finally {
      this.window.clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async #send() {
    const { budget } = this.shared;
    budget.request();
    let renew = false;
    let paid = false;
    for (;;) {
      if (!(await this.#online())) {
        return { outcome: this.course.known(), reason: /** @type {Reason} */ ("gave_up") };
      }
      const { verdict: v, reply } = await this.#attempt(renew);
      if (paid && v.act !== "again") {
        budget.answered();
      }
      const move = this.course.next(v);
      if (move.done || !(await this.#pause(move, reply))) {
        return move;
      }
      ({ renew, budgeted: paid } = move);
    }
  }

  /**
   * Makes a try, unless the intent may be too old to be sent blind.
   * @param {boolean} renew
   * @returns {Promise<{verdict: Verdict, reply: Reply | null}>}
   */
  async #attempt(renew) {
    try {
      const old = await unless(this.end.signal, this.#tooOld());
      if (old) {
        return { verdict: verdict({ outcome: "not-applied", reason: "too_old" }), reply: null };
      }
      const own = await unless(this.end.signal, Promise.resolve(this.options.authorize?.(renew)));
      if (this.end.signal.aborted) {
        throw new Error("semel: the call has ended");
      }
      return await this.#exchange(this.#headers(own));
    } catch (error) {
      this.error = asError(error);
      return { verdict: verdict({ act: "again", outcome: "not-applied" }), reply: null }; // it never left
    }
  }

  /** @param {HeadersInit | undefined} own */
  #headers(own) {
    const headers = new Headers(this.kept.headers);
    new Headers(own).forEach((value, name) => headers.set(name, value));
    headers.set(KEY_HEADER, this.kept.line);
    return headers;
  }

  /**
   * Sends a request and reads its reply.
   * @param {Headers} headers
   */
  async #exchange(headers) {
    const { window, kept, options, end } = this;
    const begun = window.performance.now();
    const attempt = new AbortController();
    const stop = () => attempt.abort(new Error("semel: the call has ended"));
    const slow = () => attempt.abort(new Error("semel: the try took too long"));
    const timer = window.setTimeout(slow, options.attemptTimeout ?? ATTEMPT_TIMEOUT);
    end.signal.addEventListener("abort", stop, { once: true });
    const resend = this.tries++;
    /** @type {Reply | null} */
    let reply = null;
    this.error = null;
    try {
      const response = await window.fetch(kept.url, {
        method: kept.method, headers, body: kept.body, credentials: options.credentials ?? "same-origin",
        // Followed, a 302 to a login page would be a 200 that looks like success.
        redirect: "manual", cache: "no-store", signal: attempt.signal,
      });
      const body = await response.text();
      reply = {
        status: response.status, hidden: response.type === "opaqueredirect", headers: response.headers, body,
        problem: problemOf(response.headers, body),
      };
      this.last = reply;
    } catch (error) {
      this.error = asError(error);
    }
    window.clearTimeout(timer);
    end.signal.removeEventListener("abort", stop);
    this.#observed(resend, reply, window.performance.now() - begun);
    return { verdict: reply ? judge(reply) : verdict({ act: "again", open: true }), reply };
  }

  /**
   * @param {number} resend
   * @param {Reply | null} reply
   * @param {number} duration
   */
  #observed(resend, reply, duration) {
    const { kept, error } = this;
    try {
      this.options.observe?.({
        key: kept.key, name: kept.name, resend, status: reply?.status ?? 0, says: reply ? says(reply) : "",
        replayed: reply !== null && isReplay(reply), error, duration,
      });
    } catch (fault) {
      // It is the page's, and no matter of the intent.
      this.window.setTimeout(() => {
        throw fault;
      });
    }
  }

  /** Whether the service may have forgotten the key by the time that a try that begins now has arrived. */
  async #tooOld() {
    const { kept, options } = this;
    const age = this.window.Date.now() - kept.created;
    if (age < FRESH_FOR) {
      return age < -AHEAD;
    }
    const unpublished = options.retention ?? RETENTION;
    let endpoints;
    try {
      endpoints = await this.shared.endpoints();
    } catch (error) {
      // A service without rules may answer anything there. One that forgets a
      // key within the hour says so.
      if (age < Math.min(BLIND_FOR, unpublished)) {
        return false;
      }
      throw error;
    }
    const { pathname } = new URL(kept.url);
    const retention = shortest(endpoints, (e) => covers(e, kept.method, pathname)) ?? shortest(endpoints, () => true) ?? unpublished;
    return age + (options.attemptTimeout ?? ATTEMPT_TIMEOUT) >= retention;
  }

  /**
   * Waits before the next try, and returns whether there is one.
   * @param {ReturnType<Course["next"]>} move
   * @param {Reply | null} reply
   */
  async #pause(move, reply) {
    const throttled = reply?.status === 429 || reply?.status === 503;
    let wait = reply ? retryAfter(reply.headers) : 0;
    for (let n = move.backoff; ; n++) {
      if (n > 0) {
        wait += backoff(n, throttled);
      }
      // What failed without an answer may be repaired with the network.
      if (!(await this.#sleep(wait, reply === null))) {
        return false;
      }
      if (!move.budgeted || this.shared.budget.retry()) {
        return true;
      }
      wait = 0;
    }
  }

  /**
   * Waits, or less if the network comes back and that matters. It returns false,
   * and at once, if the call ends before the wait is over.
   * @param {number} ms
   * @param {boolean} lessOnline
   * @returns {Promise<boolean>}
   */
  #sleep(ms, lessOnline) {
    const { window, end } = this;
    if (end.signal.aborted || window.performance.now() + ms >= this.deadline) {
      return Promise.resolve(false);
    }
    return this.#wait(lessOnline, (done) => {
      const timer = window.setTimeout(done, ms);
      return () => window.clearTimeout(timer);
    });
  }

  /**
   * Waits until the browser has a network, and returns whether it has before the
   * call ends. A try without one would fail, and nobody could say that it never
   * left. This machine itself is reached without.
   * @returns {Promise<boolean>}
   */
  #online() {
    const { window, end } = this;
    const { hostname } = new URL(this.kept.url);
    const here = /^(.+\.)?localhost$|^127\.|^\[::1\]$/.test(hostname);
    if (end.signal.aborted || here || window.navigator?.onLine !== false) {
      return Promise.resolve(!end.signal.aborted);
    }
    this.error = new Error("semel: the browser is offline");
    return this.#wait(true, () => () => {});
  }

  /**
   * Waits for what begin begins, or for the network; false if the call ends first.
   * @param {boolean} online
   * @param {(done: () => void) => () => void} begin returns how to undo it
   * @returns {Promise<boolean>}
   */
  #wait(online, begin) {
    const { window, end } = this;
    return new Promise((resolve) => {
      const finish = (/** @type {boolean} */ on) => {
        undo();
        window.removeEventListener?.("online", done);
        end.signal.removeEventListener("abort", ended);
        resolve(on);
      };
      const done = () => finish(true);
      const ended = () => finish(false);
      if (online) {
        window.addEventListener?.("online", done);
      }
      end.signal.addEventListener("abort", ended);
      const undo = begin(done);
    });
  }

  /**
   * Writes the end down, if it is one, and returns the result.
   * @param {{outcome: Outcome, reason: Reason}} move
   * @param {(settled: Settlement) => boolean} settle
   * @returns {Result}
   */
  #ended({ outcome, reason }, settle) {
    const { kept, last, tries, error } = this;
    const reply = last ?? { status: 0, headers: new Headers(), body: "" };
    const settlement = { outcome, reason, status: reply.status, headers: [...reply.headers], body: reply.body, at: this.window.Date.now() };
    if (outcome !== "unknown" && !settle(settlement) && outcome === "not-applied") {
      // It is still kept as open, and would be sent again after a reload.
      [outcome, reason] = ["unknown", "store"];
    }
    return {
      outcome, reason, status: reply.status, headers: reply.headers, body: reply.body,
      replayed: last !== null && isReplay(last), tries, key: kept.key, name: kept.name, error,
    };
  }
}

/** @param {unknown} error */
const asError = (error) => (error instanceof Error ? error : new Error(String(error)));

const tab = new Tab();

export const intent = tab.intent.bind(tab);
export const known = tab.known.bind(tab);
export const pending = tab.pending.bind(tab);
export const resume = tab.resume.bind(tab);
export const forget = tab.forget.bind(tab);
