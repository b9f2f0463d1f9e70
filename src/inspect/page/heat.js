/* Heat maps: layer (upwards) against update (to the right), a strip for every kind of sub-layer. */

/* cividis: even steps of brightness, and the same to the colour-blind. */
const CIVIDIS = [[0, 34, 78], [8, 51, 112], [53, 69, 108], [79, 87, 108], [102, 105, 112], [125, 124, 120],
  [148, 142, 119], [174, 163, 113], [200, 184, 102], [229, 207, 82], [254, 232, 56]];

function cividis(share) {
  const x = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1), i = Math.min(CIVIDIS.length - 2, Math.floor(x));
  return CIVIDIS[i].map((c, k) => Math.round(c + (CIVIDIS[i + 1][k] - c) * (x - i)));
}

const FIRST = 5, LAST = 65535;
const KINDS = { 1: [''], 2: ['self-attention', 'feed-forward'], 3: ['self-attention', 'cross-attention', 'feed-forward'] };

/* The codes of a heat, decoded once. */
function codes(heat) {
  if (!heat.decoded) {
    const text = atob(heat.cells), n = text.length >> 1;
    heat.decoded = new Uint16Array(n);
    for (let i = 0; i < n; i++) heat.decoded[i] = text.charCodeAt(2 * i) | text.charCodeAt(2 * i + 1) << 8;
  }
  return heat.decoded;
}

function valueOf(heat, code) {
  if (code === 0) return null;
  if (code < 4) return [NaN, Infinity, -Infinity][code - 1];
  if (code === 4) return 0;
  const v = heat.low + (code - FIRST) / (LAST - FIRST) * (heat.high - heat.low);
  return heat.log ? 10 ** v : v;
}

function cellText(v) {
  return v === null ? 'no value' : Number.isNaN(v) ? 'nan' : num(v);
}

function layerText(heat, bin) {
  const first = bin * heat.per_bin + 1, last = Math.min(heat.layers, first + heat.per_bin - 1);
  return first === last ? `layer ${first}` : `layers ${first} to ${last}`;
}

/* Kinds that have a value anywhere. */
function kindsOf(heat) {
  const all = codes(heat), out = [];
  for (let k = 0; k < heat.kinds; k++) {
    let some = false;
    for (let r = 0; r < heat.u.length && !some; r++)
      for (let b = 0; b < heat.bins && !some; b++) some = all[(r * heat.kinds + k) * heat.bins + b] !== 0;
    if (some) out.push(k);
  }
  return out;
}

function rowOf(heat, row, kind) {
  const at = (row * heat.kinds + kind) * heat.bins, all = codes(heat), out = [];
  for (let b = 0; b < heat.bins; b++) out.push(valueOf(heat, all[at + b]));
  return out;
}

function rgb(name) {
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const hex = probe.fillStyle;
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/* Height of a strip, and about that of a figure that is not drawn yet. */
function stripHeight(heat, kinds) {
  return Math.max(44, Math.min(150, Math.round(Math.max(heat.bins * 4, 230 / kinds))));
}

function likelyHeight(heat) { return heat.kinds * (stripHeight(heat, heat.kinds) + 26) + 16; }

class HeatMap {
  constructor(title) {
    this.title = title;
    this.body = make('div', { class: 'heat' });
    this.caption = make('figcaption', {});
    this.details = lazyTable('Data table', () => this.table());
    this.toggle = make('button', { type: 'button', tabindex: -1, onclick: () => this.setLog(!this.log) });
    this.node = make('figure', {}, make('div', { class: 'head' }, make('h3', {}, title), this.toggle), this.body, this.caption, this.details);
  }

  setLog(log) {
    this.log = log;
    this.nameToggle();
    this.draw();
  }

  nameToggle() {
    this.toggle.textContent = this.log ? 'log colours' : 'linear colours';
    this.toggle.setAttribute('aria-label', `${this.title}: ${this.log ? 'logarithmic' : 'linear'} colours; switch to ${this.log ? 'linear' : 'logarithmic'}`);
  }

  /* One heat, or those of two runs, which then share their colours; names are those of the runs. */
  set(heats, names) {
    const heat = heats[0], parts = [];
    this.heats = heats;
    this.names = names;
    this.heat = heat;
    if (this.log === undefined) this.log = heats.some((h) => h.log);
    this.nameToggle();
    this.node.classList.toggle('wide', heats.length > 1);

    if (heat.every > 1) parts.push(`every ${heat.every}th of ${num(heat.seen)} measurements is shown`);
    if (heat.per_bin > 1) parts.push(`a cell is the mean of ${heat.per_bin} layers`);
    this.caption.textContent = parts.length ? `Thinned: ${parts.join('; ')}.` : '';
    if (!this.body.firstChild) this.body.style.minHeight = `${likelyHeight(heat)}px`; /* the page must not jump later */
    drawLater(this.node, () => this.draw());
    this.details.redraw();
  }

  draw() {
    const h = this.heat, kinds = kindsOf(h), names = KINDS[h.kinds] || [];
    if (!kinds.length || !h.u.length) {
      this.body.replaceChildren(make('p', { class: 'empty' }, 'No values.'));
      return;
    }
    const height = stripHeight(h, kinds.length);
    this.body.style.minHeight = '';
    this.strips = [];
    const columns = this.heats.map((one, i) => {
      const parts = [];
      if (this.names[i]) parts.push(make('div', { class: 'kind' }, make('strong', {}, this.names[i])));
      for (const k of kinds) {
        parts.push(make('div', { class: 'kind' }, make('span', {}, names[k] || ''), this.scale(k)));
        parts.push(make('div', { class: 'layers', 'aria-hidden': 'true' }, make('span', {}, `${num(one.layers)}`), make('span', {}, one.layers > 1 ? '1' : '')));
        parts.push(this.strip(one, k, [this.names[i], names[k]].filter(Boolean).join(', '), height));
      }
      const u = one.u;
      parts.push(make('div', { class: 'updates', 'aria-hidden': 'true' }, make('span', {}, num(u[0])), make('span', {}, 'update'), make('span', {}, num(u[u.length - 1]))));
      return make('div', { class: 'heat' }, ...parts);
    });
    this.body.classList.toggle('pair', columns.length > 1);
    this.body.replaceChildren(...(columns.length > 1 ? columns : [...columns[0].childNodes]));
  }

  /* Where a value stands on the scale: itself, or its logarithm; null: nowhere (not finite, or no positive value). */
  level(v) {
    if (v === null || !Number.isFinite(v)) return null;
    return this.log ? (v > 0 ? Math.log10(v) : null) : v;
  }

  /* Lowest and highest level of a kind in all heats that are shown: every kind has a scale of its own, since kinds
   * differ more from one another than layers do. */
  range(kind) {
    let low = Infinity, high = -Infinity, faults = false, nones = false;
    for (const h of this.heats) {
      const all = codes(h);
      for (let r = 0; r < h.u.length; r++) for (let b = 0; b < h.bins && kind < h.kinds; b++) {
        const code = all[(r * h.kinds + kind) * h.bins + b];
        faults = faults || (code > 0 && code < 4);
        nones = nones || code === 0;
        const level = code < 4 ? null : this.level(valueOf(h, code));
        if (level === null) continue;
        if (level < low) low = level;
        if (level > high) high = level;
      }
    }
    return low <= high ? { low, high, faults, nones } : { low: 0, high: 0, faults, nones };
  }

  strip(h, kind, name, height) {
    const all = codes(h), w = h.u.length;
    const canvas = make('canvas', { width: w, height: h.bins, tabindex: this.strips.length ? -1 : 0, role: 'img',
      'aria-label': `${this.title}${name ? `, ${name}` : ''}: ${num(h.layers)} layers, ${w} updates from ${num(h.u[0])} to ${num(h.u[w - 1])}. Arrow keys read the cells, N and P go to the next strip and back, L switches the colours, T opens the data table.` });
    this.strips.push(canvas);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d'), image = context.createImageData(w, h.bins);
    const fault = rgb('--fault'), none = rgb('--none'), table = [], { low, high } = this.range(kind);
    for (let i = 0; i <= 255; i++) table.push(cividis(i / 255));
    /* a code has one colour: so each is looked up once */
    const known = new Map(), colour = (code) => {
      if (code === 0) return none;
      if (code < 4) return fault;
      const level = this.level(valueOf(h, code));
      return table[level === null ? 0 : high > low ? Math.round((level - low) / (high - low) * 255) : 128];
    };
    for (let r = 0; r < w; r++) for (let b = 0; b < h.bins; b++) {
      const code = all[(r * h.kinds + kind) * h.bins + b];
      let c = known.get(code);
      if (!c) known.set(code, c = colour(code));
      const at = ((h.bins - 1 - b) * w + r) * 4;
      image.data[at] = c[0]; image.data[at + 1] = c[1]; image.data[at + 2] = c[2]; image.data[at + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    this.listen(canvas, h, kind, name);
    return canvas;
  }

  listen(canvas, h, kind, name) {
    const w = h.u.length, place = this.strips.length - 1;
    let row = w - 1, bin = 0;
    const tell = (x, y) => {
      const v = valueOf(h, codes(h)[(row * h.kinds + kind) * h.bins + bin]);
      const where = `update ${num(h.u[row])}, ${layerText(h, bin)}`;
      showTip(x, y, where, [[null, name || this.title, cellText(v)]]);
      return `${where}: ${cellText(v)}`;
    };
    canvas.addEventListener('pointermove', (e) => {
      const box = canvas.getBoundingClientRect();
      row = Math.max(0, Math.min(w - 1, Math.floor((e.clientX - box.left) / box.width * w)));
      bin = Math.max(0, Math.min(h.bins - 1, h.bins - 1 - Math.floor((e.clientY - box.top) / box.height * h.bins)));
      tell(e.clientX, e.clientY);
    });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('blur', hideTip);
    canvas.addEventListener('keydown', (e) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], Home: [-w, 0], End: [w, 0], PageUp: [0, 10], PageDown: [0, -10] }[e.key];
      if (e.key === 'Escape') hideTip();
      if (e.key === 'l') { this.setLog(!this.log); this.strips[place].focus(); }
      if (e.key === 't') this.details.open = !this.details.open;
      const strip = this.strips[place + { n: 1, p: -1 }[e.key]];
      if (strip) strip.focus();
      if (!move) return;
      e.preventDefault();
      row = Math.max(0, Math.min(w - 1, row + move[0]));
      bin = Math.max(0, Math.min(h.bins - 1, bin + move[1]));
      const box = canvas.getBoundingClientRect();
      say(tell(box.left + (row + 0.5) / w * box.width, box.top + (h.bins - bin - 0.5) / h.bins * box.height));
    });
  }

  /* The colours of a strip and what they stand for. */
  scale(kind) {
    const { low, high, faults, nones } = this.range(kind), shown = (level) => num(this.log ? 10 ** level : level, 3);
    const canvas = make('canvas', { width: 128, height: 1, role: 'img', 'aria-label': 'colour scale' }), context = canvas.getContext('2d');
    for (let i = 0; i < 128; i++) {
      context.fillStyle = `rgb(${cividis(i / 127).join(',')})`;
      context.fillRect(i, 0, 1, 1);
    }
    const scale = make('span', { class: 'scale' });
    if (faults) scale.append(make('span', {}, make('span', { class: 'swatch fault' }), 'not finite'));
    if (nones) scale.append(make('span', {}, make('span', { class: 'swatch none' }), 'no value'));
    scale.append(shown(low), canvas, shown(high), this.log ? ' log' : ' linear');
    return scale;
  }

  table() {
    const h = this.heat, names = KINDS[h.kinds] || [''], rows = [];
    const pick = (n, most) => [...Array(n).keys()].filter((i) => i % Math.ceil(n / most) === 0 || i === n - 1);
    const updates = pick(h.u.length, 8);
    for (const k of kindsOf(h)) for (const b of pick(h.bins, 24))
      rows.push([`${layerText(h, b)}${names[k] ? `, ${names[k]}` : ''}`, ...updates.map((r) => cellText(valueOf(h, codes(h)[(r * h.kinds + k) * h.bins + b])))]);
    return { caption: `${this.title}: some layers and updates`, head: ['', ...updates.map((r) => `update ${num(h.u[r])}`)], rows };
  }
}
