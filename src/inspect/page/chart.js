/* Curves: one figure with a line for every series.
 *
 * series: {run, label, x, y, low, high, bad, markers}; x is sorted, y may hold null. low and high are
 * drawn as a band: the smallest and largest of the values that a point stands for. */

const PLOT = { width: 560, left: 50, right: 12, top: 8, bottom: 34 };

function extent(series, log) {
  let low = Infinity, high = -Infinity, x0 = Infinity, x1 = -Infinity;
  for (const s of series) {
    if (s.x.length) { x0 = Math.min(x0, s.x[0]); x1 = Math.max(x1, s.x[s.x.length - 1]); }
    for (const list of [s.y, s.low, s.high]) for (const v of list || []) {
      if (v === null || !Number.isFinite(v) || (log && v <= 0)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  if (!(low <= high)) return null;
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

class Chart {
  constructor({ title, unit, xLabel, log, canLog = true, wide }) {
    this.log = log;
    this.wide = wide;
    this.height = wide ? 320 : 240;
    charts.add(this);
    this.title = title;
    this.xLabel = xLabel;
    this.series = [];
    this.at = null;
    this.plot = make('div', { class: 'plot', tabindex: 0, role: 'group' });
    this.caption = make('figcaption', {});
    this.toggle = canLog ? make('button', { type: 'button', 'aria-pressed': String(!!log), onclick: () => this.setLog(!this.log) }, 'log') : null;
    this.details = lazyTable('Data table', () => this.table());
    this.node = make('figure', { class: wide ? 'wide' : null },
      make('div', { class: 'head' }, make('h3', {}, title, unit ? make('span', { class: 'unit' }, ` ${unit}`) : null), this.toggle),
      this.plot, this.caption, this.details);
    this.plot.addEventListener('pointermove', (e) => this.point(e));
    this.plot.addEventListener('pointerleave', () => this.leave());
    this.plot.addEventListener('blur', () => this.leave());
    this.plot.addEventListener('keydown', (e) => this.key(e));
  }

  setLog(log) {
    this.log = log;
    this.toggle.setAttribute('aria-pressed', String(log));
    if (this.series.length) this.draw();
  }

  set(series, note, xLabel) {
    this.series = series;
    if (xLabel) this.xLabel = xLabel;
    this.caption.textContent = note || '';
    this.plot.style.minHeight = `${this.height}px`; /* the page must not jump when it is drawn */
    this.plot.setAttribute('aria-label', `${this.title}: ${series.length} line${series.length === 1 ? '' : 's'} against ${this.xLabel}. Left and right arrow keys read the values; a data table follows.`);
    drawLater(this.node, () => this.draw());
    this.details.redraw();
  }

  draw() {
    /* a narrow screen gets a narrower drawing, not smaller letters; paper has one width */
    const room = printing ? (this.wide ? 1000 : 480) : this.plot.clientWidth || PLOT.width;
    this.width = Math.max(300, Math.min(1180, room));
    const box = extent(this.series, this.log) || (this.log ? null : extent(this.series, false));
    if (!box) {
      this.plot.replaceChildren(make('p', { class: 'empty' }, this.log ? 'No positive values to show on a log scale.' : 'No values yet.'));
      return;
    }
    this.box = box;
    const svg = make('svg', { viewBox: `0 0 ${this.width} ${this.height}`, 'aria-hidden': 'true' });
    this.axes(svg);
    for (const s of this.series) this.line(svg, s);
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
    for (const v of linearTicks(this.box.x0, this.box.x1, this.width / 90)) {
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
    let d = '', pen = false;
    for (let i = 0; i < s.x.length; i++) {
      if (!shown(s.y[i])) { pen = false; continue; }
      d += `${pen ? 'L' : 'M'}${this.px(s.x[i]).toFixed(1)} ${this.py(s.y[i]).toFixed(1)}`;
      pen = true;
    }
    if (d) svg.append(make('path', { d, fill: 'none', stroke: colourOf(s.run), 'stroke-width': s.markers ? 1.4 : 1.8, 'stroke-linejoin': 'round', 'stroke-dasharray': dashOf(s.run), opacity: s.markers ? 0.75 : 1 }));
    if (s.markers && s.x.length <= 120) for (let i = 0; i < s.x.length; i++)
      if (shown(s.y[i])) svg.append(make('circle', { cx: this.px(s.x[i]), cy: this.py(s.y[i]), r: 3.2, fill: 'var(--card)', stroke: colourOf(s.run), 'stroke-width': 1.8 }));
    for (const x of s.bad || []) {
      const at = this.px(x), y = this.height - PLOT.bottom;
      svg.append(make('polygon', { class: 'bad-mark', points: `${at - 5},${y} ${at + 5},${y} ${at},${y - 9}` }));
    }
  }

  /* All positions at which some series has a point. */
  positions() {
    const all = new Set();
    for (const s of this.series) for (const x of s.x) all.add(x);
    return [...all].sort((a, b) => a - b);
  }

  lines(x) {
    return this.series.filter((s) => s.x.length).map((s) => {
      const i = nearestIndex(s.x, x);
      const range = s.low && s.low[i] !== s.high[i] ? ` (${num(s.low[i])} to ${num(s.high[i])})` : '';
      return [s.run, s.label, `${num(s.y[i])}${range}`];
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
    const box = this.svg.getBoundingClientRect();
    const share = ((e.clientX - box.left) / box.width * this.width - PLOT.left) / (this.width - PLOT.left - PLOT.right);
    const x = this.box.x0 + Math.max(0, Math.min(1, share)) * (this.box.x1 - this.box.x0);
    const all = this.positions();
    this.show(all[nearestIndex(all, x)], e.clientX, e.clientY);
  }

  leave() {
    hideTip();
    if (this.cursor) this.cursor.setAttribute('visibility', 'hidden');
  }

  key(e) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === 'Escape') this.leave();
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
