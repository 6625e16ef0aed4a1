"use strict";
// Follows the feed at /events and shows it.

const $ = (id) => document.getElementById(id);

// --- figures as text ---

/** A figure with three digits and a unit of a thousand. */
function figure(value) {
  // Bounds of what three digits round to.
  const [scaled, unit] =
    value >= 9.995e8 ? [value / 1e9, " G"] : value >= 9.995e5 ? [value / 1e6, " M"] : value >= 999.5 ? [value / 1e3, " k"] : [value, ""];
  if (scaled === 0) return "0";
  if (scaled >= 100 || (unit === "" && Number.isInteger(scaled))) return scaled.toFixed(0) + unit;
  return (scaled >= 10 ? scaled.toFixed(1) : scaled.toFixed(2)) + unit;
}

const bits = (value) => (value < 1e3 ? `${figure(value)} b/s` : `${figure(value)}b/s`);
const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
const whole = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

function micros(value) {
  if (value === null) return "–";
  return value >= 1e6 ? `${(value / 1e6).toFixed(2)} s` : value >= 1e3 ? `${(value / 1e3).toFixed(2)} ms` : `${value.toFixed(1)} µs`;
}

function duration(seconds) {
  const [days, rest] = [Math.floor(seconds / 86400), Math.floor(seconds) % 86400];
  const parts = [Math.floor(rest / 3600), Math.floor(rest / 60) % 60, rest % 60];
  return (days ? `${days} d ` : "") + parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// --- the document ---

function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** Rows in place, so that a selection and the place of a screen reader stay. Cells are texts, or functions that fill a cell. */
function rows(body, cells) {
  while (body.rows.length > cells.length) body.deleteRow(-1);
  cells.forEach((row, number) => {
    const tr = body.rows[number] || body.insertRow();
    row.forEach(([value, name], column) => {
      const td = tr.cells[column] || tr.insertCell();
      if (td.className !== (name || "")) td.className = name || "";
      if (typeof value === "function") value(td);
      else text(td, value);
    });
  });
  const table = body.closest("table");
  if (table.nextElementSibling?.classList.contains("empty")) table.hidden = cells.length === 0;
}

/** A name with its meaning below. */
const explained = (name, meaning) => (td) => {
  if (td.dataset.name === name) return;
  td.dataset.name = name;
  td.replaceChildren(name);
  if (meaning) {
    const small = document.createElement("small");
    small.textContent = meaning;
    td.append(small);
  }
};

const loadBar = (load) => (td) => {
  if (!td.firstElementChild) {
    const [load, bar, full, words] = ["div", "i", "b", "span"].map((name) => document.createElement(name));
    load.className = "load";
    bar.setAttribute("aria-hidden", "true");
    bar.append(full);
    load.append(bar, words);
    td.append(load);
  }
  const box = td.firstElementChild;
  box.dataset.level = load >= 0.9 ? "high" : "";
  box.querySelector("b").style.width = `${(load * 100).toFixed(1)}%`;
  text(box.querySelector("span"), `${Math.round(load * 100)} %`);
};

// --- what is known ---

let kept = 300;
const history = { loads: [], received: [], sent: [], dropped: [], imbalance: [] };
let events = [];
let heat = null;
let cursor = null;

function remember(update) {
  const push = (list, value) => {
    list.push(value);
    if (list.length > kept) list.splice(0, list.length - kept);
  };
  update.lanes.forEach((lane, number) => push((history.loads[number] ||= []), Math.round(lane.load * 100)));
  for (const name of ["received", "sent", "dropped", "imbalance"]) push(history[name], update[name]);
}

function show(update) {
  text($("uptime"), duration(update.uptime));
  text($("policy"), update.moves.policy || "none yet");
  text($("received"), figure(update.received));
  text($("received-bits"), bits(update.received_bits));
  text($("sent"), figure(update.sent));
  text($("sent-bits"), bits(update.sent_bits));
  text($("dropped"), figure(update.dropped));
  $("dropped-tile").classList.toggle("active", update.dropped > 0);
  text($("dropped-share"), update.received > 0 ? `${percent(Math.min(update.dropped / update.received, 1))} of received` : "nothing received");
  text($("imbalance"), update.imbalance === null ? "–" : update.imbalance.toFixed(2));
  const working = update.lanes.filter((lane) => (lane.role || "working") !== "parked").length;
  text($("balance-note"), update.lanes.length ? `${working} of ${update.lanes.length} lanes active` : "no lanes");
  const serves = update.connections !== null;
  text($("alive-title"), serves ? "Connections" : "Flows");
  text($("alive"), figure(serves ? update.connections : update.flows));
  text($("alive-note"), serves ? `${whole.format(update.flows)} flows` : `in ${update.lanes.length} lanes`);
  text($("handed-off"), figure(update.handed_off));
  text($("reordered"), `${whole.format(update.reordered)} reordered`);
  showLanes(update);
  rows($("drops"), update.drops.map((drop) => [
    [explained(drop.reason, drop.meaning)], [figure(drop.rate), drop.rate > 0 ? "number bad" : "number"], [whole.format(drop.total), "number"],
  ]));
  rows($("flows"), update.top_flows.map((flow) => [
    [flow.flow], [flow.lane === null ? "–" : String(flow.lane), "number"], [figure(flow.rate), "number"], [percent(flow.share), "number"],
  ]));
  text($("sampled"), update.sampled ? `estimated from ${whole.format(update.sampled)} sampled packets` : "");
  text($("plans"), update.moves.policy ? `${update.moves.policy}, ${whole.format(update.moves.plans)} plans` : "");
  text($("moved"), whole.format(update.moves.total));
  text($("moves-empty"), update.moves.total ? "None among the last 200 events." : "No shard has moved.");
  list($("why"), update.moves.why);
  showLatency(update);
  rows($("devices"), update.devices.map((device) => [
    [device.name], [figure(device.arrived), "number"], [figure(device.sent), "number"], [figure(device.lost), device.lost > 0 ? "number bad" : "number"],
    [device.link || "–", device.link === "up" ? "good" : device.link ? "bad" : "quiet"],
  ]));
  $("backends-part").hidden = update.backends.length === 0;
  rows($("backends"), update.backends.map((backend) => [
    [backend.service], [backend.backend], [backend.health, backend.health === "up" ? "good" : "bad"],
  ]));
  rows($("counters"), update.counters.map((counter) => [
    [counter.name], [figure(counter.rate), "number"], [whole.format(counter.total), "number"],
  ]));
  plot();
}

function showLanes(update) {
  rows($("lanes"), update.lanes.map((lane, number) => [
    [String(number)], [loadBar(lane.load)], [figure(lane.packets), "number"], [whole.format(lane.flows), "number"], [whole.format(lane.shards), "number"],
    [[lane.role, lane.mode].filter(Boolean).join(", ") || "working", "roomy quiet"],
  ]));
  $("lanes").closest("table").hidden = update.lanes.length === 0;
  $("heat").hidden = update.lanes.length === 0;
  document.querySelector(".axis").hidden = update.lanes.length === 0;
  $("lanes-empty").hidden = update.lanes.length > 0;
}

function showLatency(update) {
  rows($("classes"), update.classes.map((one) => {
    const objective = one.objective_us === null ? ["none", "number quiet"]
      : [`${micros(one.objective_us)} ${one.met === null ? "" : one.met ? "met" : "missed"}`, one.met === false ? "number bad" : "number"];
    return [[one.name], [micros(one.latency_us_p50), "number"], [micros(one.latency_us_p99), "number"], objective];
  }));
  const measured = update.lanes.some((lane) => lane.latency_us_p50 !== null);
  $("lane-latency").hidden = !measured;
  if (!measured) return;
  rows($("latencies"), update.lanes.map((lane, number) => [
    [String(number)], [micros(lane.latency_us_p50), "number"], [micros(lane.latency_us_p99), "number"],
  ]));
}

function list(element, lines) {
  while (element.children.length > lines.length) element.lastElementChild.remove();
  lines.forEach((line, number) => {
    const item = element.children[number] || element.appendChild(document.createElement("li"));
    text(item, line);
  });
}

/** One event, with its kind where the list has several. */
function item(event, hasKind) {
  const li = document.createElement("li");
  const time = document.createElement("time");
  const at = new Date(event.unix_ms);
  time.dateTime = at.toISOString();
  time.title = at.toLocaleString();
  time.textContent = clock.format(at);
  const words = document.createElement("span");
  words.textContent = event.text;
  li.append(time);
  if (hasKind) {
    const kind = document.createElement("em");
    kind.textContent = event.kind;
    li.append(kind);
  }
  li.append(words);
  return li;
}

function showEvents() {
  const last = [...events].reverse();
  $("events").replaceChildren(...last.map((event) => item(event, true)));
  const moves = last.filter((event) => event.kind === "move").slice(0, 5);
  $("moves").replaceChildren(...moves.map((event) => item(event, false)));
}

function addEvents(added) {
  if (added.length === 0) return;
  events = [...events, ...added].slice(-200);
  showEvents();
  text($("announcement"), added.map((event) => event.text).join(". "));
}

function plot() {
  if ($("heat").clientWidth > 0) heat = Plots.heat($("heat"), history.loads, kept, cursor);
  for (const canvas of document.querySelectorAll("canvas[data-series]")) {
    Plots.line(canvas, history[canvas.dataset.series], kept, canvas.dataset.series === "imbalance" ? 1 : 0);
  }
  showReading();
}

// --- single values of the heat map, by pointer and by keys ---

function showReading() {
  const load = cursor && history.loads[cursor.lane]?.at(-1 - cursor.age);
  const when = cursor && (cursor.age === 0 ? "now" : `${cursor.age} s ago`);
  text($("reading"), load === null || load === undefined ? "" : `lane ${cursor.lane}, ${when}: ${load} %`);
}

function point(at) {
  cursor = at;
  plot();
}

$("heat").addEventListener("pointermove", (event) => heat && point(heat.at(event.offsetX, event.offsetY)));
$("heat").addEventListener("pointerleave", () => point(null));
$("heat").addEventListener("blur", () => point(null));
$("heat").addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [0, 1], ArrowRight: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [0, 30], PageDown: [0, -30] };
  const step = steps[event.key];
  if (event.key === "Escape") point(null);
  if (!step || history.loads.length === 0) return;
  event.preventDefault();
  const from = cursor || { lane: 0, age: 0 };
  const within = (value, most) => Math.min(Math.max(value, 0), Math.max(most, 0));
  const longest = (history.loads[from.lane]?.length || 1) - 1;
  point({ lane: within(from.lane + step[0], history.loads.length - 1), age: cursor ? within(from.age + step[1], longest) : 0 });
});

// --- the configuration, when it is opened ---

$("config-details").addEventListener("toggle", async () => {
  if (!$("config-details").open) return;
  try {
    const reply = await fetch("/config", { cache: "no-store" });
    text($("config"), reply.ok ? await reply.text() : `The instance answered with ${reply.status}.`);
  } catch {
    text($("config"), "The instance cannot be reached.");
  }
});

// --- the connection ---

/** Milliseconds without an update after which a connection counts as lost: updates come once a second. */
const SILENCE = 5000;
const AGAIN = 2000;
let source = null;
let heard = Date.now();
let lostAt = null;

function status(state) {
  const line = $("connection");
  const since = lostAt === null ? 0 : Math.round((Date.now() - lostAt) / 1000);
  // The seconds are not announced: the element changes its text once, and its title each time.
  const words = { waiting: "Connecting", live: "Live", lost: "Connection lost, reconnecting" }[state];
  if (line.dataset.state !== state) {
    line.dataset.state = state;
    document.body.dataset.state = state;
    line.textContent = words;
  }
  line.title = state === "lost" ? `for ${since} s` : "";
  document.title = `${state === "lost" ? "(lost) " : ""}rheo ${location.host}`;
}

function lose() {
  lostAt ??= Date.now();
  status("lost");
}

function connect() {
  source?.close();
  source = new EventSource("/events");
  const on = (name, handle) => source.addEventListener(name, (event) => {
    heard = Date.now();
    lostAt = null;
    status("live");
    handle(JSON.parse(event.data));
  });
  on("state", (state) => {
    kept = state.seconds_kept;
    Object.assign(history, state.history);
    text($("version"), state.version);
    text($("axis-start"), `${Math.round(kept / 60)} min ago`);
    events = state.update.events;
    showEvents();
    show(state.update);
  });
  on("update", (update) => {
    remember(update);
    addEvents(update.events);
    show(update);
  });
  source.addEventListener("error", lose);
}

setInterval(() => {
  if (Date.now() - heard < SILENCE) return;
  lose();
  // A browser gives up after some errors, and notices no silence.
  if (source.readyState === EventSource.CLOSED || Date.now() - heard > 2 * SILENCE) {
    heard = Date.now() - SILENCE;
    connect();
  }
}, AGAIN);

text($("host"), location.host);
Plots.scale($("scale"));
addEventListener("resize", plot);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  Plots.scale($("scale"));
  plot();
});
connect();
