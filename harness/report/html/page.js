"use strict";
const tests = [...document.querySelectorAll("details.test")];
const search = document.getElementById("search");
const buttons = [...document.querySelectorAll("button[data-filter]")];
const colors = ["#2f7ed8", "#e8804c", "#3a9d5d", "#b06fd8", "#c94f7c", "#7a8793"];

// Filters; the address says which are on, so that a link shows what its sender saw.

const chosen = (kind) => buttons.filter((b) => b.dataset.filter === kind && b.ariaPressed === "true").map((b) => b.dataset.value);

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = chosen("verdict"), hardware = chosen("hardware");
  let shown = 0;
  for (const test of tests) {
    const mine = test.dataset.verdicts.split(" ");
    test.hidden = !(words.every((word) => test.dataset.words.includes(word))
      && (!verdicts.length || verdicts.some((verdict) => mine.includes(verdict)))
      && (!hardware.length || hardware.includes(test.dataset.hardware)));
    shown += !test.hidden;
  }
  document.getElementById("shown").textContent = `${shown} of ${tests.length} tests`;
}

function remember() {
  const asked = new URLSearchParams();
  if (search.value) asked.set("q", search.value);
  for (const button of buttons) if (button.ariaPressed === "true") asked.append(button.dataset.filter, button.dataset.value);
  history.replaceState(null, "", String(asked) ? `#?${asked}` : "#");
  filter();
}

function clear() {
  search.value = "";
  for (const button of buttons) button.ariaPressed = "false";
}

// An address leads to a test, or to a selection of them.

function follow() {
  const fragment = location.hash.slice(1);
  if (!fragment) return;
  clear();
  if (fragment.startsWith("?")) {
    const asked = new URLSearchParams(fragment.slice(1));
    search.value = asked.get("q") ?? "";
    for (const button of buttons) button.ariaPressed = String(asked.getAll(button.dataset.filter).includes(button.dataset.value));
  }
  filter();
  let name = fragment;
  try { name = decodeURIComponent(fragment); } catch { /* as it stands */ }
  const test = tests.find((one) => one.id === name);
  if (!test) return;
  test.open = true;
  test.scrollIntoView();
  test.querySelector("summary").focus({ preventScroll: true });
}

// Keys.

function step(by) {
  const visible = tests.filter((test) => !test.hidden);
  const at = visible.findIndex((test) => test.contains(document.activeElement));
  const next = visible[at < 0 ? (by > 0 ? 0 : visible.length - 1) : at + by];
  next?.querySelector("summary").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { clear(); remember(); search.blur(); return; }
  if (event.target === search) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); }
  if (event.key === "j") step(1);
  if (event.key === "k") step(-1);
});
search.addEventListener("input", remember);
for (const button of buttons) button.addEventListener("click", () => {
  button.ariaPressed = String(button.ariaPressed !== "true");
  remember();
});
window.addEventListener("hashchange", follow);

// Charts are unpacked and drawn when a test is opened for the first time.

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

let loaded;
const load = () => loaded ??= (async () => {
  const script = document.createElement("script");
  script.nonce = document.getElementById("plotly").nonce;
  script.textContent = await unpack("plotly");
  document.head.append(script);
  return JSON.parse(await unpack("data"));
})();

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");

function figure(place, caption) {
  const box = document.createElement("figure"), text = document.createElement("figcaption"), plot = document.createElement("div");
  text.textContent = caption;
  plot.className = "plot";
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", caption);
  box.append(text, plot);
  place.append(box);
  return plot;
}

function draw(plot, traces, layout) {
  // A text of Plotly's may hold markup of its own: names from runs go through plain().
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), automargin: true };
  return Plotly.newPlot(plot, traces, {
    margin: { l: 8, r: 8, t: 8, b: 8 }, height: 260, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { color: style("--text"), size: 11 }, legend: { orientation: "h", y: 1.15 }, colorway: colors, ...layout,
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  }, { displayModeBar: false, responsive: true });
}

const plain = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

function drawCurve(place, curve, values) {
  const all = values.map((_, i) => i + 1), traces = [], shapes = [], annotations = [];
  if (curve.approved?.length) {
    const half = curve.approved.map((v) => Math.max(curve.relative * Math.abs(v), curve.absolute));
    const steps = curve.judged.length ? curve.judged : all;
    const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    traces.push({ ...edge, x: steps, y: curve.approved.map((v, i) => v - half[i]) });
    traces.push({ ...edge, x: steps, y: curve.approved.map((v, i) => v + half[i]), fill: "tonexty", fillcolor: `${style("--band")}33` });
    traces.push({ x: steps, y: curve.approved, name: "approved", mode: "lines", line: { dash: "dot", color: style("--faint") } });
  }
  traces.push({ x: curve.steps.length ? curve.steps : all, y: values, name: "now", mode: values.length > 60 ? "lines" : "lines+markers", marker: { size: 4 }, line: { color: style("--accent") } });
  if (curve.step !== null && curve.step !== undefined) {
    shapes.push({ type: "line", x0: curve.step, x1: curve.step, y0: 0, y1: 1, yref: "paper", line: { color: style("--bad"), dash: "dash", width: 1 } });
    annotations.push({ x: curve.step, y: 1, yref: "paper", text: `first at ${curve.step}`, showarrow: false, xanchor: "left", font: { color: style("--bad") } });
  }
  draw(figure(place, `${curve.name}${curve.unit ? ` (${curve.unit})` : ""} — ${curve.title}`), traces,
    { shapes, annotations, xaxis: { title: { text: curve.name.endsWith("_curve") ? "evaluation" : "step" } } });
}

function drawTrend(place, trend, sessions) {
  const runs = trend.values.map((_, i) => i + 1), shapes = [], annotations = [];
  const told = { PASS: "--good", IMPROVED: "--good", XFAIL: "--odd", NO_BASELINE: "--odd", INCONCLUSIVE: "--odd" };
  const hover = trend.sessions.map((n, i) => [...sessions[n], trend.statuses[i]].map(plain).join("<br>"));
  const marks = [];
  const mark = (at, color, letter, meaning) => {
    const text = `${letter}${marks.push([letter, meaning])}`;
    shapes.push({ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: style(color), width: 1, dash: "dot" } });
    annotations.push({ x: at, y: 1, yref: "paper", yanchor: "bottom", text, showarrow: false, font: { color: style(color), size: 10 } });
  };
  for (const [start, end, center] of trend.segments) {
    shapes.push({ type: "line", x0: start + 0.5, x1: end + 0.5, y0: center, y1: center, line: { color: style("--faint"), width: 2 } });
    if (start) mark(start + 0.5, "--bad", "C", `level changed at ${sessions[trend.sessions[start]][1].slice(0, 7)}`);
  }
  const approvals = new Map();
  for (const [when, reason] of trend.approvals) {
    const after = trend.sessions.findIndex((n) => sessions[n][0] >= when);
    const at = after < 0 ? runs.length : after;
    approvals.set(at, [...(approvals.get(at) ?? []), reason]);
  }
  for (const [at, reasons] of approvals) {
    const times = reasons.length > 1 ? ` ${reasons.length} times, last` : "";
    mark(at + 0.5, "--good", "A", `approved${at ? "" : " before these runs"}${times}: ${reasons.at(-1).slice(0, 60)}`);
  }
  shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: trend.anchor, y1: trend.anchor, line: { color: style("--band"), width: 1, dash: "dash" } });
  const colorOf = (status) => style(told[status] ?? "--bad");
  const drift = trend.drifted ? ", drifted" : "";
  const plot = figure(place, `${trend.title}${trend.unit ? ` (${trend.unit})` : ""} over ${runs.length} runs${drift}`);
  const legend = document.createElement("small");
  legend.textContent = marks.map(([letter, meaning], i) => `${letter}${i + 1} ${meaning}`).join(" · ");
  plot.after(legend);
  draw(plot,
    [{ x: runs, y: trend.values, mode: "markers", marker: { color: trend.statuses.map(colorOf), size: 5 }, text: hover, hovertemplate: "%{y}<br>%{text}<extra></extra>" }],
    { shapes, annotations, showlegend: false, margin: { l: 8, r: 8, t: 24, b: 8 }, xaxis: { title: { text: "run" }, tickformat: "d", range: [0.4, runs.length + 0.6] } });
}

function drawTest(place, drawn, data) {
  place.replaceChildren();
  for (const curve of drawn.curves) drawCurve(place, curve, data.curves[curve.run][curve.name]);
  for (const memory of drawn.memory)
    draw(figure(place, `${memory.metric} (MiB)`), [{ type: "bar", orientation: "h", x: memory.values, y: memory.runs.map((name, i) => plain(`${i + 1}. ${name.length > 24 ? `${name.slice(0, 10)}…${name.slice(-12)}` : name}`)) }],
      { yaxis: { autorange: "reversed" } });
  for (const times of drawn.times)
    draw(figure(place, `milliseconds of a step, by rank — ${times.title}`),
      Object.entries(times.kinds).map(([kind, values]) => ({ type: "bar", orientation: "h", name: kind, x: values, y: values.map((_, rank) => `rank ${rank}`) })),
      { barmode: "stack", yaxis: { autorange: "reversed" } });
  for (const key of drawn.timelines) {
    const box = document.createElement("div");
    box.className = "timeline";
    box.append(document.importNode(new DOMParser().parseFromString(data.timelines[key], "image/svg+xml").documentElement, true));
    place.append(box);
  }
  for (const trend of drawn.trends) drawTrend(place, trend, data.sessions);
}

async function show(test) {
  const place = test.querySelector(".charts");
  if (!test.open || place.dataset.drawn === String(dark.matches)) return;
  place.dataset.drawn = String(dark.matches);
  try {
    const data = await load();
    drawTest(place, data.tests[place.dataset.test], data);
  } catch (error) {
    place.textContent = `The charts can't be drawn: ${error.message}. A newer browser may help.`;
    place.classList.add("told");
  }
}

for (const test of tests) test.addEventListener("toggle", () => show(test));
dark.addEventListener("change", () => tests.forEach(show));
document.getElementById("unscripted").remove();
follow();
