// The script of the page. With it the browser sends the payments and sends them
// again when no answer comes; without it the form does, and the server is the
// client. What changes by itself comes through htmx: the stream says that
// something has changed, and #live fetches it.

import { refresh, rules, Till } from "./till.js";

// Without htmx or its extension, when one did not load, the figures would stay
// as they were. The page is left as it is without a script: each press brings
// all of it anew. Nothing tells what htmx has, but it takes nothing twice.
if (window.htmx?.registerExtension("sse", {}) !== false) {
  document.querySelector("#plain").hidden = false;
  await new Promise(() => {});
}

const form = document.querySelector("#shop");
const tills = [...document.querySelectorAll(".till")].map((section) => new Till(section));
const at = (where) => tills.filter((till) => where === "all" || till.name === where);

// act does what a button asks for. Tills take turns: a service that is killed at
// one would take down what is on its way at the others.
async function act(button) {
  const [what, where] = button.value.split(" ");
  const refusal = refusalNear(button);
  switch (what) {
    case "new":
      at(where).forEach((till) => till.renew());
      break;
    case "reload":
      if (!(await setUp(refusal))) {
        break;
      }
      await Promise.all(at(where).map((till) => till.payAndLeave()));
      location.reload();
      break;
    case "step":
      for (const till of at(where)) {
        till.field("shown").value++;
      }
      stepped = button;
      break;
    case "yes":
    case "no":
      // The buttons are about to go, and the truth comes in their place.
      button.closest(".account").focus();
      if (await post(button, refusal)) {
        at(where).forEach((till) => till.guessed());
      }
      break;
    case "run":
      await post(button, refusal);
      break;
    default:
      if (await setUp(refusal)) {
        await pay(what, where);
      }
  }
  refresh();
}

// stepped is the "next step" that was pressed last. The last one goes, and the
// focus then moves on to the money that comes in its place.
let stepped;
document.body.addEventListener("htmx:after:swap", () => {
  if (stepped && !stepped.isConnected && document.activeElement === document.body) {
    document.querySelector(`#account-${stepped.value.split(" ")[1]}`).focus();
    stepped = undefined;
  }
});

async function pay(what, where) {
  for (const till of at(where)) {
    if (till.settled && (what === "twice" || where === "all")) {
      till.renew();
    }
  }
  for (const till of at(where)) {
    await till.pay(what === "twice" ? 2 : 1);
  }
}

// refusalNear is where it stands why nothing was done. It is looked for while the
// button is there: news may take that away before there is an answer.
const refusalNear = (button) => button.closest("#tills, #crowd").querySelector(".refusal");

// refuse says why nothing was done, or with "" that there is no such reason, and
// returns whether there is none.
function refuse(refusal, why) {
  refusal.textContent = why;
  refusal.hidden = !why;
  return !why;
}

const silent = "The demo does not answer. Nothing was done, as far as this page knows.";

// post sends the form as it would be without a script; of the page that comes
// back only a refusal is of interest. It returns whether there was none.
async function post(button, refusal) {
  let answer;
  try {
    answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
  } catch {
    return refuse(refusal, silent);
  }
  if (answer.ok) {
    return refuse(refusal, "");
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return refuse(refusal, page.querySelector(".lead")?.textContent ?? `The demo answered with ${answer.status}.`);
}

// setUp sets lease and bank, where they were chosen and are not so already. It
// returns whether there is nothing against paying.
async function setUp(refusal) {
  const now = document.querySelector("#set").dataset;
  const { lease, bank } = Object.fromEntries(new FormData(form));
  const changes = [];
  if (lease && lease !== now.lease) {
    changes.push(["/demo/service", { lease }]);
  }
  if (bank && bank !== now.bank) {
    changes.push(["/demo/bank", { dedupe: bank === "remembers" }]);
  }
  for (const [path, body] of changes) {
    let answer;
    try {
      answer = await fetch(path, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    } catch {
      return refuse(refusal, silent);
    }
    if (!answer.ok) {
      return refuse(refusal, `Nothing was sent: PUT ${path} was answered with ${answer.status}.`);
    }
  }
  return refuse(refusal, "");
}

// The choices outlive a reload as the orders do, unless the page was opened
// through a link that makes them.
const choices = ["fault", "times", "guess", "step", "newkeys", "otheramount", "lease", "bank", "seed", "shoppers", "trouble"];
for (const name of choices) {
  const saved = sessionStorage.getItem(name);
  const field = form.elements[name];
  if (saved === null || location.search) {
    continue;
  }
  if (field.type === "checkbox") {
    field.checked = saved === "on";
  } else {
    field.value = saved;
    if (field.selectedIndex === -1) {
      field.selectedIndex = 0; // a link had offered it
    }
  }
}

// link keeps the address of the present choices, as far as they can be meant.
// What is to stay as it is may be something else elsewhere, so it is named.
function link() {
  const now = document.querySelector("#set").dataset;
  const made = [...new FormData(form)]
    .filter(([name]) => choices.includes(name) && !form.querySelector(`[name=${name}]:invalid`))
    .map(([name, value]) => [name, value || now[name]]);
  document.querySelector("#link").href = `/?${new URLSearchParams(made)}`;
}

form.addEventListener("change", ({ target }) => {
  if (!target.checkValidity()) {
    return;
  }
  const off = target.type === "checkbox" && !target.checked;
  sessionStorage.setItem(target.name, off ? "" : target.value);
  link();
  refresh();
});
// Enter in a field of the crowd runs it; without a script it does nothing.
document.querySelector("#crowd .fields").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input")) {
    event.preventDefault();
    form.requestSubmit(event.currentTarget.querySelector("button"));
  }
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  act(event.submitter);
});

// stale says that the figures are old, until they come again. The stream comes
// back by itself; a look that failed is taken again, since it was at news.
const stale = (is) => (document.querySelector("#stale").hidden = !is);
document.body.addEventListener("htmx:sse:error", () => stale(true));
document.body.addEventListener("htmx:sse:after:connection", () => stale(false));
for (const event of ["htmx:error", "htmx:response:error"]) {
  document.body.addEventListener(event, ({ target }) => {
    stale(true);
    if (target.id === "live") {
      setTimeout(refresh, 1000);
    }
  });
}
document.body.addEventListener("htmx:after:swap", () => {
  tills.forEach((till) => till.caughtUp());
  stale(false);
  link();
});

// A page without a script keeps its orders in a cookie, for all tabs alike.
document.cookie = `${rules.cookie}=; path=/; max-age=0; samesite=strict`;
for (const part of document.querySelectorAll(".scripted")) {
  part.hidden = false;
}
link();
