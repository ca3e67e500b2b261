// One till of the page, as a client that sends payments and sends them again
// when no answer comes. The words are all in the page, and so is what an answer
// means for an order.

const form = document.querySelector("#shop");
// number is one of the numbers that the page says a till goes by.
const number = (name) => Number(form.dataset[name]);

export const rules = JSON.parse(document.querySelector("#rules").textContent);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const chosen = (name) => form.elements[name].checked;

// leaving is true while the page is being left. A request that fails then was
// cut off by that: its till is to know after a reload that it was on its way.
let leaving = false;
for (const [event, is] of [["beforeunload", true], ["pagehide", true], ["pageshow", false]]) {
  addEventListener(event, () => (leaving = is));
}

// refresh brings the money and the diagrams up to date.
export function refresh() {
  document.querySelector("#live").dispatchEvent(new Event("refresh"));
}

// randomText returns n characters of five random bits each.
function randomText(n) {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  return Array.from(crypto.getRandomValues(new Uint8Array(n)), (b) => letters[b & 31]).join("");
}

const newKey = () => `k_${randomText(rules.keyLength)}`;

// arrived waits until the demo has all sends of an order, as its log says. It is
// at news that the log is worth another look.
async function arrived(ticket) {
  for (;;) {
    const news = new Promise((done) => document.querySelector("#stream").addEventListener("changed", done, { once: true }));
    const log = await (await fetch("/demo/log")).json();
    if (log.filter(({ order }) => order === ticket.order).length >= ticket.sent) {
      return;
    }
    await news;
  }
}

// Till is one till with its order. What it knows of the order lies in the
// tab's session storage, so that a reload loses neither order nor key.
export class Till {
  constructor(section) {
    this.section = section;
    this.name = section.dataset.till;
    this.keyed = section.dataset.keyed === "true";
    this.safe = section.dataset.safe === "true";
    this.restore();
  }

  // open starts an order. The key comes before the first send and stays.
  open(order, key) {
    this.ticket = { order, key, sent: 0, state: "open", tries: [], running: 0, flying: 0 };
    this.field("shown").value = 1;
    this.show();
  }

  renew() {
    this.open(`o_${randomText(rules.orderLength)}`, this.keyed ? newKey() : "");
  }

  field(name) {
    return form.elements[`${this.name}-${name}`];
  }

  get settled() {
    return rules.settled.includes(this.ticket.state);
  }

  // restore takes up the order of before a reload unless it was settled. If a
  // request was on its way, nobody will hear its answer. Also if it only waited
  // to send again, a till with a key asks again, and the one without leaves it
  // to the person.
  restore() {
    const saved = JSON.parse(sessionStorage.getItem(this.name));
    if (!saved || rules.settled.includes(saved.state)) {
      this.open(this.field("order").value, this.field("key")?.value ?? "");
      return;
    }
    const interrupted = saved.running > 0;
    this.ticket = { ...saved, running: 0, flying: 0 };
    if (saved.flying > 0) {
      this.ticket.state = "unknown";
      this.ticket.tries.push("page reloaded before the answer");
    }
    this.show();
    if (interrupted && this.keyed) {
      this.settle();
    }
  }

  // pay sends the order once for each click, all at the same time.
  async pay(clicks) {
    const ticket = this.ticket;
    const first = Promise.all(Array.from({ length: clicks }, () => this.settle(ticket)));
    // A till that waits for a guess does not keep the next one from paying.
    await Promise.race([first, new Promise((done) => (this.waits = done))]);
  }

  // payAndLeave sends the order and waits only until it has arrived, or will
  // not. What nobody can say of it any more its answer or its end says.
  async payAndLeave() {
    const ended = new Promise((done) => (this.ended = done));
    this.pay(1);
    await Promise.any([ended, arrived(this.ticket)]);
  }

  // settle sends until there is a result, and gives up after so many tries.
  async settle(ticket = this.ticket) {
    ticket.running++;
    for (let n = 0; n < number("tries") && ticket === this.ticket; n++) {
      const { state, text, pause } = await this.send(ticket);
      ticket.tries.push(text);
      const several = ticket.sent > 1 && (!this.safe || chosen("newkeys"));
      ticket.state = (several ? rules.several : rules.one)[ticket.state][state];
      this.show();
      if (rules.settled.includes(state)) {
        break;
      }
      if (state === "unknown" && chosen("guess") && !ticket.guessed) {
        this.waits?.();
        await new Promise((done) => (this.go = done));
      }
      await wait(pause ?? Math.min(number("longestPause"), number("pause") * 2 ** n));
    }
    ticket.running--;
    this.show();
  }

  // caughtUp shows what the client knows as far as the steps have come.
  caughtUp() {
    if (this.ticket.flying === 0) {
      this.section.classList.remove("ahead");
    }
  }

  // guessed lets a till go on that waited for the reader's guess.
  guessed() {
    this.ticket.guessed = true;
    this.go?.();
  }

  // send makes one request, which meets the chosen fault if it is one of the
  // order's first. No answer and none in time are the same: unknown.
  async send(ticket) {
    const { fault, times } = Object.fromEntries(new FormData(form));
    const headers = {
      "Content-Type": "application/json",
      "X-Order-Id": ticket.order,
      "X-Demo-Fault": ticket.sent < Number(times) ? fault : "none",
    };
    const again = ticket.sent > 0;
    if (this.keyed && again && chosen("newkeys")) {
      ticket.key = newKey();
    }
    if (this.keyed) {
      headers["Idempotency-Key"] = `"${ticket.key}"`;
    }
    ticket.sent++;
    ticket.flying++;
    // What comes of it is not told before its steps are.
    this.section.classList.toggle("ahead", chosen("step"));
    this.show();
    try {
      const answer = await fetch(this.section.dataset.path, {
        method: "POST",
        headers,
        body: again && chosen("otheramount") ? form.dataset.otherPayment : form.dataset.payment,
        signal: AbortSignal.timeout(number("patience")),
      });
      return describe(answer, await answer.text());
    } catch {
      if (leaving) {
        await new Promise(() => {});
      }
      return { state: "unknown", text: "no answer" };
    } finally {
      ticket.flying--;
      this.ended?.();
    }
  }

  show() {
    const { order, key, sent, state, tries, flying } = this.ticket;
    const shown = flying > 0 && !rules.settled.includes(state) ? "sending" : state;
    const put = (name, text) => {
      const at = this.section.querySelector(`[data-show=${name}]`);
      if (at) {
        at.textContent = text;
      }
    };
    put("order", order);
    put("key", key);
    put("sent", sent === 0 ? "not sent yet" : sent === 1 ? "sent once" : `sent ${sent} times`);
    put("pay", state === "open" && sent === 0 ? form.dataset.first : form.dataset.again);
    this.field("order").value = order;
    const lines = tries.map((text) => {
      const line = document.createElement("li");
      line.textContent = text;
      return line;
    });
    this.section.querySelector(".tries").replaceChildren(...lines);
    for (const saying of this.section.querySelectorAll("[data-say]")) {
      saying.hidden = saying.dataset.say !== shown;
    }
    this.section.dataset.state = shown;
    sessionStorage.setItem(this.name, JSON.stringify(this.ticket));
  }
}

// describe says what an answer means for the order, as the server does for a
// page without a script.
function describe(answer, body) {
  let content = {};
  try {
    content = JSON.parse(body) ?? {};
  } catch {
    // The status says enough.
  }
  const outcome = answer.headers.get("Semel-Outcome");
  const parts = [
    `${answer.status} ${answer.statusText}`.trim(),
    outcome,
    content.id && `payment ${content.id.slice(0, 8)}`,
    !outcome && content.title,
  ];
  const text = parts.filter(Boolean).join(" · ");
  const { state } = rules.told.find(({ to }) => answer.status <= to);
  const seconds = Number(answer.headers.get("Retry-After"));
  return { state, text, pause: seconds > 0 ? seconds * 1000 : undefined };
}
