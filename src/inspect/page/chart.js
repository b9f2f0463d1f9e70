/* Curves: one figure with a line for every series.
 *
 * series: {run, label, x, y, low, high, bad, markers}; x is sorted, y may hold null. low and high are
 * drawn as a band: the smallest and largest of the values that a point stands for. */

const PLOT = { width: 560, left: 50, right: 12, top: 8, bottom: 34 };

/* range: [from, to] of x, or null for all; clip: the highest and lowest hundredth of the values may leave the plot. */
function extent(series, log, range, clip) {
  let x0 = Infinity, x1 = -Infinity;
  const values = [];
  for (const s of series) {
    if (s.x.length) { x0 = Math.min(x0, s.x[0]); x1 = Math.max(x1, s.x[s.x.length - 1]); }
    for (const list of [s.y, clip ? null : s.low, clip ? null : s.high]) for (let i = 0; list && i < list.length; i++) {
      const v = list[i];
      if (v === null || !Number.isFinite(v) || (log && v <= 0)) continue;
      if (!range || (s.x[i] >= range[0] && s.x[i] <= range[1])) values.push(v);
    }
  }
  if (!values.length) return null;
  if (clip) values.sort((a, b) => a - b);
  const at = (share) => values[Math.round(share * (values.length - 1))];
  let low = clip ? at(0.01) : values.reduce((a, b) => Math.min(a, b)), high = clip ? at(0.99) : values.reduce((a, b) => Math.max(a, b));
  if (range) [x0, x1] = range;
  if (log) { low = Math.log10(low); high = Math.log10(high); }
  const room = high > low ? (high - low) * 0.05 : Math.abs(high) * 0.1 || 1;
  const flat = !log && low >= 0 && low - room < 0;
  return { x0, x1: x1 > x0 ? x1 : x0 + 1, y0: flat ? 0 : low - room, y1: high + room };
}

/* All charts of the page; whether it is being printed. */
const charts = new Set();
let printing = false;

function print(on) {
  printing = on;
  for (const chart of charts) chart.draw();
}

addEventListener('beforeprint', () => print(true));
addEventListener('afterprint', () => print(false));

/* A running mean over the points of a line: weight of what was before, 0 for none. */
function smoothed(y, weight) {
  let mean = 0, mass = 0;
  return y.map((v) => {
    if (v === null || !Number.isFinite(v)) return v;
    mean = weight * mean + (1 - weight) * v;
    mass = weight * mass + (1 - weight);
    return mean / mass;
  });
}

class Chart {
  /* whole: the horizontal axis counts, a half has no meaning there. view: {zoom, smooth, clip}, shared by charts that
   * are zoomed together; onZoom is called when the pointer has marked a part. */
  constructor({ title, unit, xLabel, log, canLog = true, wide, whole, view, onZoom }) {
    this.log = log;
    this.whole = whole;
    this.view = view || { zoom: null, smooth: 0, clip: false };
    this.onZoom = onZoom || (() => this.draw());
    this.wide = wide;
    this.height = wide ? 320 : 240;
    charts.add(this);
    this.title = title;
    this.xLabel = xLabel;
    this.series = [];
    this.at = null;
    this.plot = make('div', { class: 'plot', tabindex: 0, role: 'group' });
    this.caption = make('figcaption', {});
    this.toggle = canLog ? make('button', { type: 'button', tabindex: -1, onclick: () => this.setLog(!this.log) }) : null;
    this.nameToggle();
    this.details = lazyTable('Data table', () => this.table());
    this.node = make('figure', { class: wide ? 'wide' : null },
      make('div', { class: 'head' }, make('h3', {}, title, unit ? make('span', { class: 'unit' }, ` ${unit}`) : null), this.toggle),
      this.plot, this.caption, this.details);
    this.plot.addEventListener('pointermove', (e) => this.point(e));
    this.plot.addEventListener('pointerleave', () => this.leave());
    this.plot.addEventListener('blur', () => this.leave());
    this.plot.addEventListener('keydown', (e) => this.key(e));
    this.plot.addEventListener('pointerdown', (e) => this.grab(e));
    this.plot.addEventListener('pointerup', (e) => this.release(e));
    this.plot.addEventListener('dblclick', () => this.zoom(null));
  }

  /* The button says which scale is shown, its name what pressing it does. */
  nameToggle() {
    if (!this.toggle) return;
    this.toggle.textContent = this.log ? 'log scale' : 'linear scale';
    this.toggle.setAttribute('aria-label', `${this.title}: ${this.log ? 'logarithmic' : 'linear'} scale; switch to ${this.log ? 'linear' : 'logarithmic'}`);
  }

  setLog(log) {
    this.log = log;
    this.nameToggle();
    if (this.series.length) this.draw();
  }

  zoom(range) {
    this.view.zoom = range;
    this.onZoom();
  }

  /* Where the pointer is, on the horizontal axis. */
  xAt(e) {
    const box = this.svg.getBoundingClientRect();
    const share = ((e.clientX - box.left) / box.width * this.width - PLOT.left) / (this.width - PLOT.left - PLOT.right);
    return this.box.x0 + Math.max(0, Math.min(1, share)) * (this.box.x1 - this.box.x0);
  }

  grab(e) {
    if (!this.svg || e.button !== 0) return;
    this.grabbed = { x: this.xAt(e), clientX: e.clientX };
    this.plot.setPointerCapture(e.pointerId);
    e.preventDefault();
    this.plot.focus({ preventScroll: true });
  }

  release(e) {
    const from = this.grabbed;
    this.grabbed = null;
    if (!from) return;
    this.mark.setAttribute('visibility', 'hidden');
    const to = this.xAt(e);
    if (Math.abs(e.clientX - from.clientX) > 8) this.zoom([Math.min(from.x, to), Math.max(from.x, to)]);
  }

  drag(e) {
    const a = this.px(this.grabbed.x), b = this.px(this.xAt(e));
    this.mark.setAttribute('x', Math.min(a, b));
    this.mark.setAttribute('width', Math.abs(a - b));
    this.mark.setAttribute('visibility', 'visible');
  }

  set(series, note, xLabel) {
    this.series = series;
    if (xLabel) this.xLabel = xLabel;
    this.caption.textContent = note || '';
    this.plot.style.minHeight = `${this.height}px`; /* the page must not jump when it is drawn */
    this.plot.setAttribute('aria-label', `${this.title}: ${series.length} line${series.length === 1 ? '' : 's'} against ${this.xLabel}. Left and right arrow keys read the values, plus and minus zoom, L switches the scale, T opens the data table.`);
    drawLater(this.node, () => this.draw());
    this.details.redraw();
  }

  draw() {
    /* a narrow screen gets a narrower drawing, not smaller letters; paper has one width */
    const room = printing ? (this.wide ? 1000 : 480) : this.plot.clientWidth || PLOT.width;
    this.width = Math.max(300, Math.min(1180, room));
    const { zoom, clip } = this.view;
    const box = extent(this.series, this.log, zoom, clip);
    if (!box) {
      this.plot.replaceChildren(make('p', { class: 'empty' }, this.log ? 'No positive values to show on a log scale.' : 'No values yet.'));
      return;
    }
    this.box = box;
    const svg = make('svg', { viewBox: `0 0 ${this.width} ${this.height}`, 'aria-hidden': 'true' });
    const clipId = `clip${Chart.made = (Chart.made || 0) + 1}`;
    const inside = make('g', { 'clip-path': `url(#${clipId})` });
    svg.append(make('clipPath', { id: clipId }, make('rect', { x: PLOT.left - 4, y: PLOT.top - 4, width: this.width - PLOT.left - PLOT.right + 8, height: this.height - PLOT.top - PLOT.bottom + 8 })));
    this.axes(svg);
    svg.append(inside);
    for (const s of this.series) this.line(inside, s);
    this.mark = make('rect', { class: 'zoom-mark', y: PLOT.top, height: this.height - PLOT.top - PLOT.bottom, visibility: 'hidden' });
    svg.append(this.mark);
    this.cursor = make('line', { class: 'cursor', y1: PLOT.top, y2: this.height - PLOT.bottom, visibility: 'hidden' });
    svg.append(this.cursor);
    this.plot.replaceChildren(svg);
    this.plot.style.minHeight = '';
    this.svg = svg;
  }

  px(x) { return PLOT.left + (x - this.box.x0) / (this.box.x1 - this.box.x0) * (this.width - PLOT.left - PLOT.right); }

  py(y) {
    const v = this.log ? Math.log10(y) : y;
    return this.height - PLOT.bottom - (v - this.box.y0) / (this.box.y1 - this.box.y0) * (this.height - PLOT.top - PLOT.bottom);
  }

  axes(svg) {
    const bottom = this.height - PLOT.bottom, right = this.width - PLOT.right;
    const ys = this.log ? logTicks(this.box.y0, this.box.y1, 5) : linearTicks(this.box.y0, this.box.y1, 5);
    for (const v of ys) {
      const y = this.py(this.log ? 10 ** v : v);
      svg.append(make('line', { class: 'grid-line', x1: PLOT.left, x2: right, y1: y, y2: y }),
        make('text', { x: PLOT.left - 7, y: y + 4, 'text-anchor': 'end' }, tick(this.log ? 10 ** v : v)));
    }
    for (const v of linearTicks(this.box.x0, this.box.x1, this.width / 90, this.whole)) {
      const x = this.px(v);
      svg.append(make('text', { x, y: bottom + 15, 'text-anchor': 'middle' }, tick(v)));
    }
    svg.append(make('line', { class: 'axis-line', x1: PLOT.left, x2: right, y1: bottom, y2: bottom }),
      make('text', { x: right, y: this.height - 3, 'text-anchor': 'end' }, this.xLabel));
  }

  line(svg, s) {
    const shown = (v) => v !== null && Number.isFinite(v) && !(this.log && v <= 0);
    if (s.low && s.low.length > 1) {
      const up = [], down = [];
      for (let i = 0; i < s.x.length; i++) {
        if (!shown(s.low[i]) || !shown(s.high[i])) continue;
        up.push(`${this.px(s.x[i]).toFixed(1)} ${this.py(s.high[i]).toFixed(1)}`);
        down.push(`${this.px(s.x[i]).toFixed(1)} ${this.py(s.low[i]).toFixed(1)}`);
      }
      if (up.length > 1) svg.append(make('path', { d: `M${up.join('L')}L${down.reverse().join('L')}Z`, fill: colourOf(s.run), opacity: 0.18 }));
    }
    const path = (y) => {
      let d = '', pen = false;
      for (let i = 0; i < s.x.length; i++) {
        if (!shown(y[i])) { pen = false; continue; }
        d += `${pen ? 'L' : 'M'}${this.px(s.x[i]).toFixed(1)} ${this.py(y[i]).toFixed(1)}`;
        pen = true;
      }
      return d;
    };
    const stroke = (d, opacity) => { if (d) svg.append(make('path', { d, fill: 'none', stroke: colourOf(s.run), 'stroke-width': s.markers ? 1.4 : 1.8, 'stroke-linejoin': 'round', 'stroke-dasharray': dashOf(s.run), opacity })); };
    const smooth = s.markers ? 0 : this.view.smooth;
    stroke(path(s.y), s.markers ? 0.75 : smooth ? 0.3 : 1);
    if (smooth) stroke(path(smoothed(s.y, smooth)), 1);
    if (s.markers && s.x.length <= 120) for (let i = 0; i < s.x.length; i++)
      if (shown(s.y[i])) svg.append(make('circle', { cx: this.px(s.x[i]), cy: this.py(s.y[i]), r: 3.2, fill: 'var(--card)', stroke: colourOf(s.run), 'stroke-width': 1.8 }));
    for (const x of s.bad || []) {
      const at = this.px(x), y = this.height - PLOT.bottom;
      svg.append(make('polygon', { class: 'bad-mark', points: `${at - 5},${y} ${at + 5},${y} ${at},${y - 9}` }));
    }
  }

  /* All positions at which some series has a point. */
  positions() {
    const all = new Set(), zoom = this.view.zoom;
    for (const s of this.series) for (const x of s.x) if (!zoom || (x >= zoom[0] && x <= zoom[1])) all.add(x);
    return [...all].sort((a, b) => a - b);
  }

  lines(x) {
    return this.series.filter((s) => s.x.length).map((s) => {
      const i = nearestIndex(s.x, x);
      const range = s.low && s.low[i] !== s.high[i] ? ` (${num(s.low[i])} to ${num(s.high[i])})` : '';
      /* a value of another place says so: a validation is not that of the training loss beside it */
      const where = s.x[i] === x ? '' : `, at ${num(s.x[i])}`;
      return [s.run, s.label, `${num(s.y[i])}${range}${where}`];
    });
  }

  show(x, clientX, clientY) {
    this.at = x;
    const at = this.px(x);
    this.cursor.setAttribute('x1', at);
    this.cursor.setAttribute('x2', at);
    this.cursor.setAttribute('visibility', 'visible');
    showTip(clientX, clientY, `${this.xLabel} ${num(x)}`, this.lines(x));
  }

  point(e) {
    if (!this.svg || !this.series.length) return;
    if (this.grabbed) { this.drag(e); return; }
    const x = this.xAt(e), near = 6 / this.width * (this.box.x1 - this.box.x0);
    const marked = this.series.filter((s) => s.markers).flatMap((s) => s.x), all = this.positions();
    const validation = marked.length ? marked.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a)) : NaN;
    this.show(Math.abs(validation - x) <= near ? validation : all[nearestIndex(all, x)], e.clientX, e.clientY);
  }

  leave() {
    hideTip();
    this.grabbed = null;
    if (this.mark) this.mark.setAttribute('visibility', 'hidden');
    if (this.cursor) this.cursor.setAttribute('visibility', 'hidden');
  }

  key(e) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === 'Escape') { this.leave(); if (this.view.zoom) this.zoom(null); }
    if (e.key === 'l' && this.toggle) this.setLog(!this.log);
    if (e.key === 't') this.details.open = !this.details.open;
    if ((e.key === '+' || e.key === '-') && this.box) {
      const { x0, x1 } = this.box, middle = this.at === null ? (x0 + x1) / 2 : this.at, half = (x1 - x0) * (e.key === '+' ? 0.25 : 1);
      this.zoom(e.key === '+' ? [middle - half, middle + half] : null);
    }
    if (step === undefined || !this.svg) return;
    e.preventDefault();
    const all = this.positions();
    if (!all.length) return;
    const now = this.at === null ? (step > 0 ? -1 : all.length) : nearestIndex(all, this.at);
    const x = all[Math.max(0, Math.min(all.length - 1, now + step))];
    const box = this.svg.getBoundingClientRect();
    this.show(x, box.left + this.px(x) / this.width * box.width, box.top + box.height / 2);
    say(`${this.xLabel} ${num(x)}: ${this.lines(x).map(([, label, value]) => `${label} ${value}`).join('; ')}`);
  }

  table() {
    const all = this.positions(), most = 100, step = Math.max(1, Math.ceil(all.length / most));
    const rows = all.filter((x, i) => i % step === 0 || i === all.length - 1);
    return {
      caption: `${this.title}${step > 1 ? `; every ${step}th of ${all.length} points` : ''}`,
      head: [this.xLabel, ...this.series.map((s) => s.label)],
      rows: rows.map((x) => [num(x), ...this.series.map((s) => {
        const i = floorIndex(s.x, x);
        return i >= 0 && s.x[i] === x ? num(s.y[i]) : '';
      })]),
    };
  }
}
