// The checkout: a page that pays through semel.js. What is sent when, and what an
// answer means, is that module's; this script says what is meant, and shows what
// comes of it.

import { intent, known, resume } from "./semel.js";

const form = document.querySelector("#buy");
const checkout = document.querySelector("#checkout");
const { payment, orderHeader, faultHeader, first, again } = form.dataset;
const patience = () => Number(form.dataset.patience);

const all = (selector) => document.querySelectorAll(selector);
const show = (name, text) => all(`[data-show=${name}]`).forEach((at) => (at.textContent = text));

// In two words, for where the sentence is out of sight.
const short = {
  "open": "nothing sent", "sending": "sending", "offline": "no network", "offline-here": "no network", "paid": "paid",
  "replayed": "paid", "told": "paid", "refused": "not paid", "unknown": "not known", "unsent": "not sent",
};

// The reasons of semel.js that say more than the outcome does.
const reasons = {
  gave_up: "the wait was ended, or time was up",
  too_old: "the service may have forgotten the key",
  final_error: "the kept answer is an error of the service",
  reply_hidden: "it is done, and its answer cannot be shown",
  refused: "the service refused it",
  key_reused: "the key was used for another request",
  other_caller: "the key is another caller’s",
  redirected: "the answer was a redirect, which a browser hides",
  unprotected: "the service did not look at the key",
  store: "what came of it could not be kept",
  intent_store: "this tab’s storage is blocked or full",
  intent_damaged: "what is kept of the order cannot be read",
  intent_known: "the order is known with another request",
};

const names = {
  201: "Created", 402: "Payment Required", 409: "Conflict", 422: "Unprocessable Content", 429: "Too Many Requests",
  500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
};

// The order of this tab, as a shop's basket is held. A duplicated tab has a copy
// of it, and a tab opened anew has an order of its own.
const place = "semel-demo-checkout";
let order = kept() ?? newOrder();

function kept() {
  try {
    const read = JSON.parse(sessionStorage.getItem(place));
    return /^o_[a-z2-7]{10}$/.test(read?.id) && Number.isInteger(read.tries) && read.state in short ? read : null;
  } catch {
    return null; // nothing can be read here, or not by this page
  }
}

function newOrder() {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  const id = Array.from(crypto.getRandomValues(new Uint8Array(10)), (b) => letters[b & 31]).join("");
  return { id: `o_${id}`, tries: 0, state: "open", key: "", reason: "" };
}

// This machine is reached without a network.
const here = /^(.+\.)?localhost$|^127\.|^\[::1\]$/.test(location.hostname);

// note changes the order and shows it, and returns whether the tab has kept it.
function note(changes) {
  order = { ...order, ...changes };
  const sending = order.state === "sending";
  const state = sending && !navigator.onLine ? (here ? "offline-here" : "offline") : order.state;
  const paid = short[state] === "paid";
  show("order", order.id);
  show("key", order.key || "not drawn yet");
  show("reason", reasons[order.reason] ?? order.reason);
  show("short", short[state]);
  show("pay", paid ? again : first);
  document.querySelector("#why").hidden = ["", "reply"].includes(order.reason);
  checkout.dataset.state = state;
  form.querySelector("button[value=stop]").disabled = !sending;
  for (const saying of checkout.querySelectorAll("[data-say]")) {
    saying.hidden = saying.dataset.say !== state;
  }
  try {
    sessionStorage.setItem(place, JSON.stringify(order));
    return true;
  } catch {
    return false;
  }
}

// What the demo plays is the network and no part of what is meant, so it changes
// from try to try: the first ones meet the chosen fault.
function network() {
  const { fault, times } = Object.fromEntries(new FormData(form));
  note({ tries: order.tries + 1 });
  return { [faultHeader]: order.tries <= Number(times) ? fault : "none" };
}

// The same once more is counted, and makes the list no longer.
let latest = { text: "", times: 0, at: null };

function tried({ name, status, says, replayed, error, duration }) {
  if (name !== order.id) {
    return; // an earlier order's
  }
  const answer = [`${status} ${names[status] ?? ""}`.trim(), says || (replayed && "replayed")].filter(Boolean).join(" · ");
  const none = error ? `no answer: ${error.message.replace("semel: ", "")}` : "a redirect, which a browser hides";
  const text = status ? answer : none;
  if (text !== latest.text || status) {
    latest = { text, times: 0, at: document.createElement("li") };
    document.querySelector("#tries").append(latest.at);
  }
  latest.times++;
  latest.at.textContent = latest.times > 1 ? `${text}, ${latest.times} times` : `${text}, after ${Math.round(duration)} ms`;
}

let stop = new AbortController();

function pay() {
  const paying = intent("/payments", payment, {
    name: order.id,
    headers: { "Content-Type": "application/json", [orderHeader]: order.id },
    attemptTimeout: patience(), authorize: network, observe: tried, signal: stop.signal,
  });
  note({ key: look()?.key ?? order.key });
  return paying;
}

// look is what the tab knows of the order. Where it cannot look, it says so.
function look() {
  try {
    return known(order.id);
  } catch (error) {
    note({ state: "unsent", reason: error.code });
    return null;
  }
}

// settle pays, so many times at once, and shows what comes of it.
async function settle(times = 1) {
  const { id } = order;
  stop = stop.signal.aborted ? new AbortController() : stop;
  if (!note({ state: "sending", reason: "" })) {
    note({ state: "unsent", reason: "intent_store" }); // a reload would not know what was paid
    return;
  }
  try {
    const [{ outcome, replayed, tries, key, reason }] = await Promise.all(Array.from({ length: times }, pay));
    const paid = tries === 0 ? "told" : replayed ? "replayed" : "paid";
    if (id === order.id) {
      note({ state: { "applied": paid, "not-applied": "refused", "unknown": "unknown" }[outcome], key, reason });
    }
  } catch (error) {
    if (id === order.id) {
      note({ state: "unsent", reason: error.code ?? error.message });
    }
  }
}

const acts = {
  pay: () => settle(),
  twice: () => settle(2),
  async reload() {
    settle();
    await new Promise((done) => setTimeout(done, 300)); // it is on its way
    location.reload();
  },
  copy: () => open(location.href, "_blank"), // with this page's storage, as duplicating does
  stop: () => stop.abort(),
  new() {
    stop.abort(); // what is open of the order before stays, for the next load
    document.querySelector("#tries").replaceChildren();
    latest = { text: "", times: 0, at: null };
    note(newOrder());
    count();
  },
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  acts[event.submitter.value]();
});
for (const event of ["online", "offline"]) {
  addEventListener(event, () => note({}));
}

// The money, and the requests of this order, whenever something has changed.

const dollars = (minor) => (minor / 100).toLocaleString("en-US", { style: "currency", currency: "USD" });
const counted = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

async function count() {
  const stale = document.querySelector("#stale");
  const { id } = order;
  try {
    const paths = [`/demo/orders/${id}`, "/demo/ledger", "/demo/log"];
    const [{ charges, taken }, ledger, log] = await Promise.all(paths.map(async (path) => (await fetch(path)).json()));
    if (id !== order.id) {
      return; // another one is being counted
    }
    const verdict = charges === 0 ? "" : charges > 1 ? "over" : "right";
    show("sum", dollars(taken));
    show("charges", { "": "not charged", right: "charged once", over: `charged ${charges} times` }[verdict]);
    for (const at of all("[data-verdict]")) {
      at.dataset.verdict = verdict;
    }
    const arrived = log.filter((entry) => entry.order === id).length;
    show("arrived", arrived === 0 ? "no request has arrived" : `${counted(arrived, "request")} arrived`);
    show("others", `${dollars(ledger.keyed.taken)} for ${counted(ledger.keyed.orders, "order")}`);
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
}

// A page with an open stream is not kept alive for the back button.
let news;
function listen() {
  news = new EventSource("/demo/changes");
  news.addEventListener("changed", count);
  news.addEventListener("error", () => (document.querySelector("#stale").hidden = false));
  count();
}
addEventListener("pagehide", () => news.close());
addEventListener("pageshow", ({ persisted }) => persisted && listen());

// begin shows what is known of the order, and finishes what a reload has
// interrupted, or what this tab is a copy of.
function begin() {
  // An order that was sent and left nothing behind was refused.
  const before = { sending: order.tries > 0 ? "refused" : "open", unsent: "open" }[order.state] ?? order.state;
  note({ state: before });
  const now = look();
  if (now?.outcome === "unknown") {
    settle();
  } else if (now) {
    note({ state: now.outcome === "applied" ? "told" : "refused", key: now.key, reason: now.reason });
  }
  // The orders before, whose end nobody waits for.
  resume({ attemptTimeout: patience(), authorize: () => ({ [faultHeader]: "none" }) }).catch(() => {});
}

form.hidden = false;
begin();
listen();
