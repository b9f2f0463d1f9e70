'use strict';
/* Small helpers. Text from logs reaches the page only as text, never as markup. */

const NS = 'http://www.w3.org/2000/svg';

function make(tag, attributes, ...children) {
  const svg = ['svg', 'path', 'line', 'text', 'g', 'circle', 'rect', 'polygon', 'clipPath'].includes(tag);
  const node = svg ? document.createElementNS(NS, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);

/* 1234567 -> 1,234,567; 0.000123456 -> 0.0001235; four digits that matter. */
function num(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  if (typeof x === 'string') return x;
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞';
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return x.toExponential(Math.min(digits - 1, 2)).replace('-', '−').replace('e−', 'e−').replace('e+', 'e');
  if (Number.isInteger(x)) return x.toLocaleString('en-US').replace('-', '−');
  const places = Math.max(0, Math.min(8, digits - 1 - Math.floor(Math.log10(size))));
  const text = x.toFixed(places);
  return (size >= 1000 ? Number(text).toLocaleString('en-US') : text).replace('-', '−');
}

/* For axes: short, without digits that say nothing. */
function tick(x) {
  const size = Math.abs(x);
  if (size === 0) return '0';
  if (size >= 1e6) return `${Number((x / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((x / 1e3).toPrecision(3))}k`;
  if (size < 1e-3) return x.toExponential(1).replace('.0', '').replace('e-', 'e−');
  return String(Number(x.toPrecision(4))).replace('-', '−');
}

function duration(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/* Index of the last element of a sorted list that is <= x; -1 without one. */
function floorIndex(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function nearestIndex(list, x) {
  const i = floorIndex(list, x);
  if (i < 0) return 0;
  return i + 1 < list.length && list[i + 1] - x < x - list[i] ? i + 1 : i;
}

/* Round steps of an axis. */
function linearTicks(low, high, about, whole) {
  const raw = (high - low) / Math.max(1, about);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const round = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const step = whole ? Math.max(1, Math.round(round)) : round;
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(k * step);
  return out;
}

/* Powers of ten, thinned; within one decade 1, 2, 5. low and high are logarithms. */
function logTicks(low, high, about) {
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), out = [];
  if (last - first >= 2) {
    const step = Math.max(1, Math.ceil((last - first) / about));
    for (let e = first; e <= last; e += step) out.push(e);
    return out;
  }
  for (let e = Math.floor(low); e <= Math.ceil(high); e++)
    for (const m of [1, 2, 5]) {
      const x = e + Math.log10(m);
      if (x >= low - 1e-9 && x <= high + 1e-9) out.push(x);
    }
  if (out.length > 2) return out;
  return linearTicks(10 ** low, 10 ** high, about).filter((v) => v > 0).map((v) => Math.log10(v));
}

/* Runs are told apart by colour and by dashes. */
const DASHES = ['', '7 4', '2 3', '9 3 2 3', '12 5', '4 2', '1 4', '14 3 2 3'];
const colourOf = (i) => `var(--r${i % 8})`;
const dashOf = (i) => DASHES[(i + Math.floor(i / 8)) % 8];

function swatch(run, marker) {
  const svg = make('svg', { width: 30, height: 12, 'aria-hidden': 'true' });
  svg.append(make('line', { x1: 1, x2: 29, y1: 6, y2: 6, stroke: colourOf(run), 'stroke-width': 2.5, 'stroke-dasharray': dashOf(run) }));
  if (marker) svg.append(make('circle', { cx: 15, cy: 6, r: 3.5, fill: 'var(--card)', stroke: colourOf(run), 'stroke-width': 2 }));
  return svg;
}

function say(text) { byId('say').textContent = text; }

/* A box beside the pointer: a title, and lines of [run or null, label, value]. */
function showTip(x, y, title, lines) {
  const tip = byId('tip');
  tip.replaceChildren(make('b', {}, title), ...lines.map(([run, label, value]) =>
    make('div', {}, run === null ? null : swatch(run), make('span', {}, label), make('strong', {}, value))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y - box.height / 2, innerHeight - box.height - 4))}px`;
}

function hideTip() { byId('tip').hidden = true; }

/* A box that a wide table scrolls in, and a line that says so while it does not fit. */
function scrollBox(label, ...children) {
  const box = make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, ...children);
  const hint = make('p', { class: 'more', hidden: true }, 'More columns to the right: scroll.');
  const look = () => { hint.hidden = box.scrollWidth <= box.clientWidth + 1 || box.scrollLeft + box.clientWidth >= box.scrollWidth - 1; };
  box.addEventListener('scroll', look);
  if ('ResizeObserver' in window) new ResizeObserver(look).observe(box);
  return { node: make('div', { class: 'scrolls' }, box, hint), box, look };
}

/* A table that is made when it is opened. fill() gives {caption, head, rows}. The key T of its figure opens it too. */
function lazyTable(label, fill) {
  const { node, box, look } = scrollBox(label);
  const details = make('details', {}, make('summary', { tabindex: -1 }, label), node);
  const show = () => { if (details.open) { box.replaceChildren(table(fill())); look(); } };
  details.addEventListener('toggle', show);
  details.redraw = show;
  return details;
}

/* A column is of words when one of its cells is no number. */
const isWord = (cell) => typeof cell === 'string' && cell !== '' && !/^[−–∞\d]/.test(cell) && !/^(nan|inf|no value)/i.test(cell);

function table({ caption, head, rows }) {
  const words = head.map((h, i) => i > 0 && rows.some((row) => isWord(row[i]) || (row[i] instanceof Node && row[i].querySelector('.badge'))));
  const of = (i) => (words[i] ? 'text' : null);
  rows.forEach((row) => row.forEach((cell, i) => { if (words[i] && cell instanceof Node) cell.classList.add('text'); }));
  return make('table', {}, caption ? make('caption', {}, caption) : null,
    make('thead', {}, make('tr', {}, ...head.map((h, i) => make('th', { scope: 'col', class: of(i) }, h)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((cell, i) =>
      cell instanceof Node ? cell : i === 0 ? make('th', { scope: 'row' }, cell) : make('td', { class: of(i) }, cell))))));
}

/* Draws a figure when it comes into sight, and all of them before printing. */
const waiting = new Map();
const sight = 'IntersectionObserver' in window ? new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) drawNow(e.target);
}, { rootMargin: '400px' }) : null;

function drawNow(node) {
  const draw = waiting.get(node);
  if (!draw) return;
  waiting.delete(node);
  if (sight) sight.unobserve(node);
  draw();
}

function drawLater(node, draw) {
  waiting.set(node, draw);
  if (sight) { sight.unobserve(node); sight.observe(node); } else drawNow(node);
}

/* What is in sight already is not waited for. */
function drawVisible() {
  for (const node of [...waiting.keys()]) {
    const box = node.getBoundingClientRect();
    if (box.top < innerHeight && box.bottom > 0) drawNow(node);
  }
}

/* The rest when there is nothing else to do: a picture of the whole page has all of them. */
function drawIdle() {
  const next = waiting.keys().next();
  if (next.done) return;
  drawNow(next.value);
  ('requestIdleCallback' in window ? requestIdleCallback : setTimeout)(drawIdle);
}

addEventListener('beforeprint', () => { for (const node of [...waiting.keys()]) drawNow(node); });
