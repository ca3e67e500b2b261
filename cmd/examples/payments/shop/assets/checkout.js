// The checkout: a page that pays through semel.js. What is sent when, and what an
// answer means, is that module's; this script says what is meant, and shows what
// comes of it.

import { intent, pending, resume } from "./semel.js";

const form = document.querySelector("#buy");
const checkout = document.querySelector("#checkout");
const { payment, orderHeader, faultHeader, patience } = form.dataset;

const show = (name, text) => (document.querySelector(`[data-show=${name}]`).textContent = text);

// The order of this tab, as a shop's basket is held. A duplicated tab has a copy
// of it, and a tab opened anew has an order of its own.
let order = JSON.parse(sessionStorage.getItem("order")) ?? newOrder();

function newOrder() {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  const id = Array.from(crypto.getRandomValues(new Uint8Array(10)), (b) => letters[b & 31]).join("");
  return { id: `o_${id}`, tries: 0, state: "open", key: "", reason: "" };
}

function note(changes) {
  order = { ...order, ...changes };
  sessionStorage.setItem("order", JSON.stringify(order));
  show("order", order.id);
  show("key", order.key || "not drawn yet");
  show("reason", order.reason || "–");
  const state = order.state === "sending" && !navigator.onLine ? "offline" : order.state;
  checkout.dataset.state = state;
  for (const saying of checkout.querySelectorAll("[data-say]")) {
    saying.hidden = saying.dataset.say !== state;
  }
}

// What the demo plays is the network and no part of what is meant, so it changes
// from try to try: the first ones meet the chosen fault.
function network() {
  const { fault, times } = Object.fromEntries(new FormData(form));
  note({ tries: order.tries + 1 });
  return { [faultHeader]: order.tries <= Number(times) ? fault : "none" };
}

const line = (text) => {
  const li = document.createElement("li");
  li.textContent = text;
  document.querySelector("#tries").append(li);
};

function tried({ status, replayed, error, duration }) {
  const outcome = status ? [status, replayed && "replayed"].filter(Boolean).join(" · ") : `no answer: ${error.message.replace("semel: ", "")}`;
  line(`${outcome}, after ${Math.round(duration)} ms`);
}

let stop = new AbortController();
const sending = () => ({ attemptTimeout: Number(patience), authorize: network, observe: tried, signal: stop.signal });
const meant = () => pending().find(({ name }) => name === order.id);

// settle shows what comes of promises for results. It waits for all of them.
async function settle(promises) {
  const { id } = order;
  stop = stop.signal.aborted ? new AbortController() : stop;
  note({ state: "sending", key: meant()?.key ?? order.key });
  try {
    for (const result of (await Promise.all(promises())).flat()) {
      const { name, outcome, replayed, tries, key, reason } = result;
      if (name !== order.id) {
        continue; // an earlier order's
      }
      const paid = tries === 0 ? "told" : replayed ? "replayed" : "paid";
      note({ state: { "applied": paid, "not-applied": "refused", "unknown": "unknown" }[outcome], key, reason });
    }
  } catch (error) {
    if (id === order.id) {
      note({ state: "unsent", reason: error.code ?? error.message });
    }
  }
}

function pay() {
  const paying = intent("/payments", payment, {
    name: order.id,
    headers: { "Content-Type": "application/json", [orderHeader]: order.id },
    ...sending(),
  });
  note({ key: meant()?.key ?? order.key });
  return paying;
}

const acts = {
  pay: () => settle(() => [pay()]),
  twice: () => settle(() => [pay(), pay()]),
  async reload() {
    settle(() => [pay()]);
    await new Promise((done) => setTimeout(done, 300)); // it is on its way
    location.reload();
  },
  copy: () => open(location.href, "_blank"), // with this page's storage, as duplicating does
  stop: () => stop.abort(),
  new() {
    stop.abort(); // what is open of the order before stays, for the next load
    document.querySelector("#tries").replaceChildren();
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
  try {
    const [ledger, log] = await Promise.all(["/demo/ledger", "/demo/log"].map(async (path) => (await fetch(path)).json()));
    const { orders, charges, charged, taken } = ledger.keyed;
    show("taken", dollars(taken));
    show("orders", `taken for ${counted(orders, "order")}`);
    const verdict = document.querySelector("[data-show=verdict]");
    verdict.hidden = orders === 0;
    verdict.dataset.verdict = orders === 0 ? "" : charges > charged ? "over" : charged < orders ? "under" : "right";
    verdict.textContent = { over: "Somebody paid twice", under: "Not all are paid yet", right: "Each order once" }[verdict.dataset.verdict] ?? "";
    const arrived = log.filter((entry) => entry.order === order.id).length;
    show("arrived", arrived === 0 ? "no request has arrived" : `${counted(arrived, "request")} arrived`);
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

form.hidden = false;
listen();
// What a reload has interrupted, or what this tab is a copy of, is finished first.
if (meant()) {
  settle(() => [resume(sending())]);
} else {
  note(order.state === "sending" ? { state: "open" } : {}); // nothing was kept, so nothing was sent
  resume(sending()); // of the orders before
}
