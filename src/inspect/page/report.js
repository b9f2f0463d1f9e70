/* The page: sections, and how they follow the data. */

/* How quantities of `layers` lines are called; a name that is not here is shown as it is. */
const QUANTITIES = {
  grad_norm: 'Gradient norm of the parameters', output_grad_norm: 'Gradient norm of the output',
  param_norm: 'Norm of the parameters', update_ratio: 'Update relative to the parameters', ln_input_norm: 'Norm of the layer norm’s input',
  branch_ratio: 'Branch relative to the residual', ffn_nonzero: 'Share of non-zero activations',
  attention_entropy: 'Entropy of attention', cosine: 'Cosine between input and output',
};
const CURVES = {
  gnorm: ['Gradient norm', '', true], lr: ['Learning rate', '', false], wps: ['Speed', 'target tokens per second', false],
  alpha: ['Alpha of the method', '', false],
  encoder_cosine: ['Cosine between encoder positions', 'on the validation data', false], position_cosine: ['Cosine between encoder positions', 'while training', false], data_wait: ['Waiting for data', 'seconds', false],
  bleu: ['BLEU', '', false],
};
const MANY = 12; /* more runs than these are folded */
const pretty = (name) => name.replace(/_/g, ' ').replace(/^./, (c) => c.toUpperCase());
const quantity = (name) => QUANTITIES[name] || pretty(name);

let data = JSON.parse(byId('data').textContent);
const ui = { x: 'update', run: 0, beside: -1, heat: '', kind: '', share: 1, seeds: false, off: new Set(), view: { zoom: null, smooth: 0, clip: false } };
let parts = {}; /* the figures that stand, by name */

const curveOf = (run, name) => run.curves.find((c) => c.name === name);
const now = () => (data.live ? Date.now() / 1000 : data.made);
const isLive = (run) => run.state === 'unfinished' && now() - run.modified < 120;
const stateOf = (run) => (isLive(run) ? 'running' : run.state);
const numberOf = (x) => (typeof x === 'number' ? x : x === 'inf' ? Infinity : x === '-inf' ? -Infinity : NaN);

function badge(run) { return make('span', { class: `badge ${stateOf(run)}` }, stateOf(run)); }

function best(run) {
  const c = curveOf(run, 'valid.nll_loss');
  let at = -1;
  for (let i = 0; c && i < c.u.length; i++) {
    const v = (c.lo || c.m)[i];
    if (v !== null && (at < 0 || v < (c.lo || c.m)[at])) at = i;
  }
  return at < 0 ? null : { update: c.u[at], nll: (c.lo || c.m)[at] };
}

function newest(run, name) {
  const c = curveOf(run, name);
  return c && c.m.length ? c.m[c.m.length - 1] : NaN;
}

/* ---- the x axis of curves: updates, tokens or hours of the same run ---- */

const X_AXES = { update: 'update', tokens: 'target tokens', wall: 'hours' };

function toX(run, updates) {
  if (ui.x === 'update') return updates;
  const c = curveOf(run, `train.${ui.x}`);
  if (!c || !c.u.length) return updates.map(() => 0);
  const unit = ui.x === 'wall' ? 3600 : 1;
  return updates.map((u) => {
    const i = floorIndex(c.u, u);
    if (i < 0) return c.m[0] * (u / Math.max(1, c.u[0])) / unit;
    if (i + 1 >= c.u.length) return c.m[i] / unit;
    return (c.m[i] + (c.m[i + 1] - c.m[i]) * (u - c.u[i]) / (c.u[i + 1] - c.u[i])) / unit;
  });
}

function seriesOf(run, index, curve, label, markers) {
  return { run: index, update: curve.u, label, x: toX(run, curve.u), y: curve.m, low: curve.lo, high: curve.hi, bad: toX(run, curve.bad), markers };
}

function thinningNote(series) {
  const stride = Math.max(1, ...series.map((s) => s.stride || 1));
  return stride > 1 ? `Thinned: a point is the mean of up to ${num(stride)} logged values, the band their smallest and largest.` : '';
}

/* ---- overview ---- */

function title() {
  const names = data.runs.map((r) => r.name);
  return names.length === 1 ? names[0] : `${names.length} runs`;
}

function depthOf(run) {
  const s = run.settings, parts = [];
  if (s.arch !== 'dec' && s['encoder-layers']) parts.push(s['encoder-layers']);
  if (s.arch !== 'enc' && s['decoder-layers']) parts.push(s['decoder-layers']);
  return parts.join('–');
}

function lead() {
  const r = data.runs[0];
  if (data.runs.length > 1) return `Compared: ${data.runs.map((x) => x.name).join(', ')}`;
  if (r.state === 'missing') return r.folder;
  const what = [r.settings.method, depthOf(r) && `${depthOf(r)} layers`, r.settings['d-model'] && `width ${r.settings['d-model']}`];
  return what.filter(Boolean).join(', ');
}

function tile(label, value, below) {
  return make('div', {}, make('dt', {}, label), make('dd', {}, value, below ? make('small', {}, below) : null));
}

function tiles(run) {
  const b = best(run), total = Number(run.settings['max-update']), start = run.start || {};
  const planned = start.planned_bytes || start.planned || start.memory;
  return make('dl', { class: 'tiles' },
    tile('State', make('span', {}, badge(run), progress(run)), [run.update ? `update ${num(run.update)}${total ? ` of ${num(total)}` : ''}` : '', leftOf(run)].filter(Boolean).join(', ')),
    tile('Best validation', b ? `${num(b.nll)}` : '–', b ? `nats per token, perplexity ${num(Math.exp(b.nll), 3)}, at update ${num(b.update)}` : 'not validated yet'),
    tile('Training loss', num(newest(run, 'train.nll_loss')), 'nats per token, newest'),
    tile('Speed', num(newest(run, 'train.wps'), 3), 'target tokens per second'),
    tile('Time', duration(newest(run, 'train.wall')), `${num(newest(run, 'train.tokens'), 3)} target tokens`),
    tile('Parameters', num(numberOf(start.parameters)), [start.device, planned ? bytes(planned) : ''].filter(Boolean).join(', ')));
}

/* How far a run is that has an end; null for others. */
function progress(run) {
  const total = Number(run.settings['max-update']);
  if (!(total > 0) || !run.update || stateOf(run) !== 'running') return null;
  return make('progress', { max: total, value: Math.min(total, run.update), 'aria-label': `${run.name}: ${Math.round(100 * run.update / total)} percent` });
}

/* "2 h 10 min left", of a run that goes on. */
function leftOf(run) {
  const total = Number(run.settings['max-update']), rate = newest(run, 'train.ups');
  return stateOf(run) === 'running' && total > run.update && rate > 0 ? `${duration((total - run.update) / rate)} left` : '';
}

function compareTable() {
  const bests = data.runs.map((r) => best(r));
  const lowest = Math.min(...bests.map((b, i) => (b && data.runs[i].state !== 'failed' ? b.nll : Infinity)));
  return table({
    caption: 'Best and newest validation loss in nats per token. The best of the runs that did not fail is set in bold.',
    head: ['run', 'state', 'method', 'layers', 'width', 'parameters', 'update', 'best', 'at update', 'newest', 'tokens/s', 'time', 'left'],
    rows: data.runs.map((r, i) => [
      make('th', { scope: 'row' }, swatch(i), ' ', r.name), make('td', {}, badge(r), progress(r)), r.settings.method || '–', depthOf(r) || '–', r.settings['d-model'] || '–',
      num(numberOf((r.start || {}).parameters)), num(r.update),
      make('td', { class: bests[i] && bests[i].nll === lowest ? 'best' : null }, num(bests[i] ? bests[i].nll : NaN)),
      num(bests[i] ? bests[i].update : NaN), num(newest(r, 'valid.nll_loss')), num(newest(r, 'train.wps'), 3), duration(newest(r, 'train.wall')), make('td', {}, leftOf(r).replace(' left', ''))]),
  });
}

function notices() {
  const out = [];
  for (const r of data.runs) {
    const name = data.runs.length > 1 ? `${r.name}: ` : '';
    if (r.problem) out.push(make('div', { class: 'notice bad' }, make('p', {}, `${name}${r.problem}`)));
    else if (!r.curves.length && !r.heats.length) out.push(make('div', { class: 'notice' }, make('p', {}, `${name}the log has no measurements yet.`)));
    if (r.state === 'failed') {
      const why = (r.end || {}).reason || (r.end || {}).where && `first value that is not finite: ${r.end.where}` || 'the log does not say why';
      out.push(make('div', { class: 'notice bad' }, make('p', {}, `${name}the run failed at update ${num((r.end || {}).update)}: ${why}`)));
    }
    const b = r.broken;
    if (b.count) out.push(make('div', { class: 'notice' }, make('p', {}, `${name}${b.count} line${b.count > 1 ? 's' : ''} of log.jsonl could not be read and ${b.count > 1 ? 'are' : 'is'} left out; the first is line ${b.line}: ${b.reason}`)));
    if (b.long) out.push(make('div', { class: 'notice' }, make('p', {}, `${name}${b.long} line${b.long > 1 ? 's' : ''} of log.jsonl of more than 16 MiB left out`)));
  }
  return out;
}

function warnings() {
  const lines = data.runs.flatMap((r) => r.warnings.map((w) => [num(w.update), data.runs.length > 1 ? r.name : '', make('td', { class: 'long' }, w.text)]));
  if (!lines.length) return null;
  return make('details', {}, make('summary', {}, `${lines.length} warning${lines.length > 1 ? 's' : ''} of the run`),
    make('div', { class: 'scroll' }, table({ head: ['update', '', 'warning'], rows: lines })));
}

/* ---- curves ---- */

/* Names of curves in all runs, without those that have a place of their own. */
function curveNames() {
  const names = new Set();
  for (const r of data.runs) for (const c of r.curves) names.add(c.name);
  for (const n of ['train.loss', 'train.nll_loss', 'valid.nll_loss', 'train.epoch', 'train.tokens', 'train.wall', 'train.ups', 'train.ppl', 'valid.ppl', 'valid.best']) names.delete(n);
  /* methods without a schedule log alpha 1; a run that never waits for data has nothing to show */
  const constant = (n) => data.runs.every((r) => new Set((curveOf(r, n) || { m: [] }).m).size <= 1);
  for (const n of ['train.alpha', 'train.data_wait']) if (constant(n)) names.delete(n);
  const order = ['train.gnorm', 'train.lr', 'train.wps', 'train.alpha', 'valid.encoder_cosine', 'layers.position_cosine', 'valid.bleu'];
  return [...names].sort((a, b) => (order.indexOf(a) + 99) % 99 - (order.indexOf(b) + 99) % 99 || (a < b ? -1 : 1));
}

function label(run, what) { return data.runs.length > 1 ? (what ? `${run.name}, ${what}` : run.name) : what || run.name; }

/* Runs that differ in the seed alone, by the first of them; every run for itself unless that is asked for. */
function groups() {
  const all = new Map();
  data.runs.forEach((r, i) => {
    const { seed, 'save-dir': folder, ...rest } = r.settings;
    const key = ui.seeds && Object.keys(rest).length ? JSON.stringify(Object.entries(rest).sort()) : `#${i}`;
    if (!all.has(key)) all.set(key, []);
    all.get(key).push(i);
  });
  return [...all.values()];
}

/* Mean of the lines of several seeds where all have a value, and a band from the smallest to the largest. */
function together(lines) {
  if (lines.length === 1) return lines[0];
  const [first, ...others] = lines, at = others.map((s) => new Map(s.update.map((u, i) => [u, i])));
  const out = { ...first, update: [], x: [], y: [], low: [], high: [], bad: lines.flatMap((s) => s.bad) };
  first.update.forEach((u, i) => {
    const values = [first.y[i], ...others.map((s, k) => s.y[at[k].get(u)])];
    if (values.some((v) => v === null || v === undefined || !Number.isFinite(v))) return;
    out.update.push(u);
    out.x.push(first.x[i]);
    out.y.push(values.reduce((a, b) => a + b) / values.length);
    out.low.push(Math.min(...values));
    out.high.push(Math.max(...values));
  });
  return out;
}

function groupName(members) { return `${data.runs[members[0]].name}${members.length > 1 ? ` and ${members.length - 1} more seed${members.length > 2 ? 's' : ''}` : ''}`; }

/* The lines of a curve, one for each group of runs that is switched on. */
function linesOf(name, what, markers) {
  const out = [];
  for (const members of groups()) {
    if (ui.off.has(data.runs[members[0]].name)) continue;
    const lines = members.filter((i) => curveOf(data.runs[i], name)).map((i) => {
      const c = curveOf(data.runs[i], name);
      return Object.assign(seriesOf(data.runs[i], members[0], c, data.runs.length > 1 ? [groupName(members), what].filter(Boolean).join(', ') : what || data.runs[i].name, markers), { stride: c.stride });
    });
    if (lines.length) out.push(together(lines));
  }
  return out;
}

function lossSeries() {
  const out = [];
  if (!ui.off.has('training')) out.push(...linesOf('train.nll_loss', 'training', false));
  if (!ui.off.has('validation')) out.push(...linesOf('valid.nll_loss', 'validation', true));
  return out.sort((a, b) => a.run - b.run);
}

function curveSeries(name) { return linesOf(name, '', name.startsWith('valid.')); }

function curveTitle(name) {
  const key = name.slice(name.indexOf('.') + 1);
  return CURVES[key] || [pretty(key), '', false];
}

function curvesSection() {
  const node = section('curves', 'Curves');
  const pick = make('select', {}, ...Object.entries(X_AXES).map(([v, t]) => make('option', { value: v, selected: v === ui.x }, t)));
  pick.addEventListener('change', () => { ui.x = pick.value; ui.view.zoom = null; refresh(); });
  parts.key = make('ul', { class: 'key', 'aria-label': 'Lines; press to switch one on or off' });
  const smooth = make('select', {}, ...[['0', 'none'], ['0.8', 'some'], ['0.95', 'much']].map(([v, t]) => make('option', { value: v, selected: Number(v) === ui.view.smooth }, t)));
  smooth.addEventListener('change', () => { ui.view.smooth = Number(smooth.value); fillCurves(); });
  const clip = make('input', { type: 'checkbox', checked: ui.view.clip });
  clip.addEventListener('change', () => { ui.view.clip = clip.checked; fillCurves(); });
  const seeds = make('input', { type: 'checkbox', checked: ui.seeds });
  seeds.addEventListener('change', () => { ui.seeds = seeds.checked; fillCurves(); });
  parts.unzoom = make('button', { type: 'button', hidden: true, onclick: () => { ui.view.zoom = null; fillCurves(); } }, 'whole range');
  const held = ui.seeds;
  ui.seeds = true;
  const grouped = groups().length < data.runs.length;
  ui.seeds = held;
  node.append(parts.key, make('div', { class: 'row' }, make('label', { class: 'pick' }, 'Horizontal axis ', pick), make('label', { class: 'pick' }, 'Smoothing ', smooth),
    make('label', { class: 'pick' }, clip, ' clip outliers'), grouped ? make('label', { class: 'pick' }, seeds, ' seeds as mean and band') : null,
    make('span', { class: 'pick' }, 'Drag over a figure to zoom. '), parts.unzoom));
  const grid = make('div', { class: 'grid' });
  parts.charts = {};
  const add = (name, options) => { parts.charts[name] = new Chart({ ...options, view: ui.view, onZoom: fillCurves }); grid.append(parts.charts[name].node); };
  add('loss', { title: 'Loss', unit: 'nats per token', xLabel: 'update', wide: true });
  for (const name of curveNames()) {
    const [t, unit, log] = curveTitle(name);
    add(name, { title: t, unit, log, xLabel: 'update' });
  }
  node.append(grid);
  return node;
}

/* Largest by smallest value: a run that blew up must not flatten the others. */
function spread(series) {
  const box = extent(series, true);
  return box ? 10 ** (box.y1 - box.y0) : 1;
}

/* Whole numbers on the axis, unless it is of hours. */
const countsX = () => ui.x !== 'wall';

/* The key is made of switches: a line that is off stays off in all figures. Of many runs the key is folded. */
function fillKey() {
  const entry = (name, run, marker, ...more) => {
    const button = make('button', { type: 'button', class: 'entry', 'aria-pressed': String(!ui.off.has(name)), 'aria-label': `${name}: show its line` }, swatch(run, marker), name, ...more);
    button.addEventListener('click', () => {
      if (!ui.off.delete(name)) ui.off.add(name);
      const at = [...parts.key.querySelectorAll('button')].indexOf(button);
      fillCurves();
      const again = parts.key.querySelectorAll('button')[at];
      if (again) again.focus();
    });
    return make('li', {}, button);
  };
  const all = data.runs.length > 1 ? groups().map((g) => entry(data.runs[g[0]].name, g[0], false, g.length > 1 ? ` and ${g.length - 1} more` : '', badge(data.runs[g[0]]))) : [];
  const folded = parts.key.querySelector('details'), open = folded && folded.open;
  parts.key.replaceChildren(...all.slice(0, MANY), entry('training', 0), entry('validation', 0, true));
  if (all.length > MANY) parts.key.append(make('li', { class: 'rest' }, make('details', { open }, make('summary', {}, `${all.length - MANY} more runs`), make('ul', { class: 'key' }, ...all.slice(MANY)))));
}

function fillCurves() {
  fillKey();
  parts.unzoom.hidden = !ui.view.zoom;
  for (const [name, chart] of Object.entries(parts.charts)) {
    const series = name === 'loss' ? lossSeries() : curveSeries(name);
    if (name === 'loss' && chart.log === undefined) chart.setLog(spread(series) > 100);
    chart.whole = countsX();
    chart.set(series, [thinningNote(series), series.some((s) => s.bad.length) ? 'Triangles mark values that are not finite.' : ''].filter(Boolean).join(' '), X_AXES[ui.x]);
  }
}

/* ---- through the depth ---- */

const heatKey = (h) => `${h.stack}/${h.name}`;

function heatKeys() {
  const keys = new Map();
  for (const r of data.runs) for (const h of r.heats) if (h.layers > 1 || h.kinds > 1) keys.set(heatKey(h), h);
  return keys;
}

function heatTitle(h) { return `${quantity(h.name)}, ${h.stack}`; }

function depthSection() {
  const keys = heatKeys();
  if (!keys.size) return null;
  const node = section('depth', 'Through the depth');
  node.append(make('p', { class: 'note' }, 'What every sub-layer did while the model learnt. Layers are counted from the bottom; each strip has a colour scale of its own, and two runs side by side share one.'));
  if (!keys.has(ui.heat)) ui.heat = [...keys.keys()][0];
  const what = make('select', {}, ...[...keys.entries()].map(([k, h]) => make('option', { value: k, selected: k === ui.heat }, heatTitle(h))));
  const slide = make('input', { type: 'range', min: 0, max: 1000, value: ui.share * 1000, 'aria-label': 'Update that the profile shows' });
  const at = make('output', {});
  const kind = make('select', {});
  what.addEventListener('change', () => { ui.heat = what.value; fillProfile(); });
  kind.addEventListener('change', () => { ui.kind = kind.value; fillProfile(); });
  parts.profileKind = kind;
  slide.addEventListener('input', () => { ui.share = slide.value / 1000; fillProfile(); });
  parts.profile = new Chart({ title: 'Profile', xLabel: 'layer', wide: true, log: true, whole: true });
  parts.profileAt = at;
  node.append(make('div', { class: 'row' }, make('label', { class: 'pick' }, 'Quantity ', what), make('label', { class: 'pick' }, 'Sub-layers ', kind), make('label', { class: 'pick' }, 'Update ', slide, ' ', at)),
    make('div', { class: 'grid' }, parts.profile.node));
  const run = make('select', {}, ...data.runs.map((r, i) => make('option', { value: i, selected: i === ui.run }, r.name)));
  run.addEventListener('change', () => { ui.run = Number(run.value); build(); byId('heats').scrollIntoView(); });
  node.append(make('h3', { id: 'heats', class: 'hidden' }, 'Heat maps'));
  const beside = make('select', {}, make('option', { value: -1 }, 'no other run'), ...data.runs.map((r, i) => make('option', { value: i, selected: i === ui.beside }, r.name)));
  beside.addEventListener('change', () => { ui.beside = Number(beside.value); build(); byId('heats').scrollIntoView(); });
  if (data.runs.length > 1) node.append(make('div', { class: 'row' }, make('label', { class: 'pick' }, 'Heat maps of ', run), make('label', { class: 'pick' }, 'beside those of ', beside)));
  const grid = make('div', { class: 'grid' });
  parts.heats = {};
  const shown = data.runs[ui.run] && data.runs[ui.run].heats.length ? data.runs[ui.run] : data.runs.find((r) => r.heats.length);
  ui.run = data.runs.indexOf(shown);
  run.value = String(ui.run);
  /* both stacks of a quantity side by side */
  const order = [...new Set(shown.heats.map((h) => h.name))];
  for (const h of [...shown.heats].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))) {
    if (h.layers < 2 && h.kinds < 2) continue;
    parts.heats[heatKey(h)] = new HeatMap(heatTitle(h));
    grid.append(parts.heats[heatKey(h)].node);
  }
  node.append(grid);
  return node;
}

/* Which kinds of sub-layer the profile can show; several runs show one of them, to stay readable. */
function chooseKind() {
  const names = new Set();
  for (const r of data.runs) for (const h of r.heats) if (heatKey(h) === ui.heat && h.u.length) for (const k of kindsOf(h)) names.add((KINDS[h.kinds] || [''])[k]);
  const all = [...names], runs = data.runs.filter((r) => r.heats.some((h) => heatKey(h) === ui.heat)).length;
  if (all.length > 1) all.unshift('all');
  if (!all.includes(ui.kind)) ui.kind = runs > 1 && all.length > 1 ? all[1] : all[0];
  parts.profileKind.replaceChildren(...all.map((n) => make('option', { value: n, selected: n === ui.kind }, n || 'all')));
}

function fillProfile() {
  chooseKind();
  const series = [];
  let last = 0, log = false, name = '';
  for (const r of data.runs) for (const h of r.heats) if (heatKey(h) === ui.heat && h.u.length) last = Math.max(last, h.u[h.u.length - 1]);
  const wanted = Math.round(last * ui.share);
  let shownAt = wanted;
  data.runs.forEach((r, i) => {
    const h = r.heats.find((x) => heatKey(x) === ui.heat);
    if (!h || !h.u.length) return;
    const row = nearestIndex(h.u, wanted), kinds = kindsOf(h);
    name = heatTitle(h);
    log = log || h.log;
    shownAt = h.u[row];
    kinds.forEach((k, n) => {
      const values = rowOf(h, row, k), kind = (KINDS[h.kinds] || [''])[k];
      if (ui.kind !== 'all' && ui.kind !== kind) return;
      /* one run: its kinds take the colours; several: the runs do */
      series.push({ run: data.runs.length > 1 ? i : n, label: label(r, kind), x: values.map((v, b) => b * h.per_bin + 1), y: values.map((v) => (v !== null && Number.isFinite(v) ? v : null)),
        bad: values.map((v, b) => (v === null || Number.isFinite(v) ? null : b * h.per_bin + 1)).filter((x) => x !== null) });
    });
  });
  parts.profileAt.textContent = num(shownAt);
  parts.profile.title = name;
  parts.profile.node.querySelector('h3').textContent = `${name}, at update ${num(shownAt)}`;
  if (parts.profileKey !== ui.heat) { parts.profile.log = log; parts.profileKey = ui.heat; }
  parts.profile.nameToggle();
  parts.profile.set(series, '');
  const key = make('ul', { class: 'key' }, ...series.map((s) => make('li', {}, swatch(s.run), s.label)));
  parts.profile.caption.replaceChildren(key);
}

function fillDepth() {
  if (!parts.profile) return;
  const other = ui.beside === ui.run ? undefined : data.runs[ui.beside];
  for (const h of data.runs[ui.run].heats) {
    if (!parts.heats[heatKey(h)]) continue;
    const match = other && other.heats.find((x) => heatKey(x) === heatKey(h));
    parts.heats[heatKey(h)].set(match ? [h, match] : [h], match ? [data.runs[ui.run].name, other.name] : ['']);
  }
  fillProfile();
}

/* ---- diverged, tables, configuration, samples ---- */

/* Any JSON value as nested lists of facts. */
function facts(value) {
  if (Array.isArray(value)) {
    if (value.every((v) => typeof v !== 'object' || v === null)) return document.createTextNode(value.map((v) => (typeof v === 'number' ? num(v) : String(v))).join(', '));
    return make('ol', {}, ...value.map((v) => make('li', {}, facts(v))));
  }
  if (value && typeof value === 'object')
    return make('dl', { class: 'facts' }, ...Object.entries(value).flatMap(([k, v]) => [make('dt', {}, pretty(k)), make('dd', {}, facts(v))]));
  return document.createTextNode(typeof value === 'number' ? num(value) : String(value));
}

/* The report of a failed run: in words first, its numbers behind. */
function failure(r) {
  const d = r.diverged;
  if (typeof d === 'string') return make('div', { class: 'card' }, make('h3', {}, r.name), make('p', {}, d));
  const { reason, first_fault: fault, advice, ...rest } = d;
  const card = make('div', { class: 'card' }, make('h3', {}, r.name));
  if (reason) card.append(make('p', {}, reason));
  if (fault && typeof fault === 'object') card.append(make('p', {}, make('strong', {}, 'First sign: '),
    `${fault.text || 'unknown place'}, update ${num(fault.update)}: ${fault.symptom || fault.quantity || ''} (${quantity(String(fault.quantity || 'value')).toLowerCase()} ${num(fault.value)})`));
  if (Array.isArray(advice) && advice.length) card.append(make('p', {}, make('strong', {}, 'What usually helps:')), make('ul', {}, ...advice.map((a) => make('li', {}, (a && a.text) || String(a)))));
  card.append(make('details', {}, make('summary', {}, 'All of diverged.json'), facts(rest)));
  return card;
}

function divergedSection() {
  const hit = data.runs.filter((r) => r.diverged);
  if (!hit.length) return null;
  const node = section('diverged', 'What went wrong');
  node.append(make('div', { class: 'stack' }, ...hit.map(failure)));
  return node;
}

function validTable() {
  const all = data.runs.filter((r) => curveOf(r, 'valid.nll_loss'));
  if (!all.length) return null;
  const node = section('validation', 'Validation');
  const updates = [...new Set(all.flatMap((r) => curveOf(r, 'valid.nll_loss').u))].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(updates.length / 200));
  const rows = updates.filter((u, i) => i % step === 0 || i === updates.length - 1).map((u) => [num(u), ...all.map((r) => {
    const c = curveOf(r, 'valid.nll_loss'), i = floorIndex(c.u, u), b = best(r);
    return make('td', { class: i >= 0 && c.u[i] === u && b && b.update === u ? 'best' : null }, i >= 0 && c.u[i] === u ? num(c.m[i]) : '');
  })]);
  node.append(make('div', { class: 'card' }, scrollBox('Validation losses',
    narrow({ caption: `Validation loss in nats per token; the best of a run is set in bold${step > 1 ? `; every ${step}th of ${updates.length}` : ''}`, head: ['update', ...all.map((r) => r.name)], rows })).node));
  return node;
}

function narrow(content) {
  const node = table(content);
  node.classList.add('narrow');
  return node;
}

function configSection() {
  const runs = data.runs.filter((r) => Object.keys(r.settings).length);
  if (!runs.length) return null;
  const node = section('configuration', 'Configuration');
  const keys = [...new Set(runs.flatMap((r) => Object.keys(r.settings)))].sort();
  const shown = (r, k) => (r.settings[k] === undefined ? '–' : r.settings[k] === '' ? '(none)' : r.settings[k]);
  const differ = keys.filter((k) => k !== 'save-dir' && runs.some((r) => r.settings[k] !== runs[0].settings[k]));
  const grid = (list, caption) => narrow({ caption, head: ['option', ...runs.map((r) => r.name)], rows: list.map((k) => [k, ...runs.map((r) => make('td', { class: 'text' }, shown(r, k)))]) });
  if (runs.length > 1) node.append(make('div', { class: 'card' }, scrollBox('Options in which the runs differ', differ.length ? grid(differ, 'Options in which the runs differ') : make('p', {}, 'All options are the same.')).node));
  node.append(make('details', {}, make('summary', {}, `All ${keys.length} options`), make('div', { class: 'card' }, scrollBox('All options', grid(keys, 'As in config.yaml; every default is included')).node)));
  return node;
}

function samplesSection() {
  const runs = data.runs.filter((r) => r.samples.length);
  if (!runs.length) return null;
  const node = section('samples', 'Sample outputs');
  for (const r of runs) {
    const wanted = r.samples.some((s) => s.reference);
    node.append(make('div', { class: 'card' }, scrollBox(`Sample outputs of ${r.name}`,
      table({ caption: data.runs.length > 1 ? r.name : '', head: ['source', 'output', ...(wanted ? ['reference'] : []), 'score'],
        rows: r.samples.map((s) => [make('td', { class: 'long' }, s.source || ''), make('td', { class: 'long' }, s.text), ...(wanted ? [make('td', { class: 'long' }, s.reference || '')] : []), num(numberOf(s.score))]) })).node));
  }
  return node;
}

/* ---- the whole ---- */

function section(id, name) { return make('section', { id, 'aria-label': name }, make('h2', {}, name)); }

/* What the figures are made for; when it changes, the page is built anew. */
function shape() {
  return JSON.stringify(data.runs.map((r) => [r.name, r.curves.map((c) => c.name), r.heats.map(heatKey), !!r.diverged, r.samples.length, Object.keys(r.settings).length]));
}

/* Of many runs the table is folded after the first. */
function comparison() {
  const whole = compareTable(), rows = [...whole.tBodies[0].rows], box = scrollBox('Comparison of the runs', whole).node;
  if (rows.length <= MANY) return box;
  const held = parts.unfolded, set = (open) => { parts.unfolded = open; rows.slice(MANY).forEach((r) => { r.hidden = !open; }); button.textContent = open ? `only the first ${MANY} runs` : `all ${rows.length} runs`; };
  const button = make('button', { type: 'button', onclick: () => set(!parts.unfolded) });
  set(!!held);
  return make('div', {}, box, button);
}

function overview() {
  const single = data.runs.length === 1 && data.runs[0].state !== 'missing';
  parts.overview.replaceChildren(make('h1', {}, title()), make('p', { class: 'lead' }, lead()), ...notices(),
    ...(single ? [tiles(data.runs[0])] : data.runs.length > 1 ? [make('div', { class: 'card' }, comparison())] : []),
    ...[warnings()].filter(Boolean));
}

function build() {
  waiting.clear();
  charts.clear();
  parts = { shape: shape(), overview: make('section', { id: 'overview', 'aria-label': 'Overview' }) };
  const some = data.runs.some((r) => r.curves.length);
  const sections = [parts.overview, divergedSection(), some ? curvesSection() : null, depthSection(), validTable(), samplesSection(), configSection()].filter(Boolean);
  byId('main').replaceChildren(...sections);
  byId('nav').replaceChildren(...sections.map((s) => make('a', { href: `#${s.id}` }, s.getAttribute('aria-label'))));
  refresh();
}

/* Brings all figures up to date with the data. A live page shows in its tab how far the runs are. */
function refresh() {
  const far = data.live ? `${num(Math.max(...data.runs.map((r) => r.update)))} · ` : '';
  document.title = `${far}${title()} · fathom`;
  overview();
  if (parts.charts) fillCurves();
  fillDepth();
  const valid = byId('validation'), fresh = valid && validTable();
  if (fresh) valid.replaceChildren(...fresh.childNodes);
  drawVisible();
  byId('made').textContent = `Made by fathom ${data.version} on ${new Date(data.made * 1000).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short' })}.`;
}

function theme() {
  const pick = byId('theme');
  try { pick.value = localStorage.getItem('fathom-theme') || 'auto'; } catch (e) { /* no storage: auto */ }
  const apply = () => {
    if (pick.value === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = pick.value;
    try { localStorage.setItem('fathom-theme', pick.value); } catch (e) { /* not kept */ }
  };
  pick.addEventListener('change', () => { apply(); build(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', build);
  apply();
}

/* Live: the server says that something changed, the page asks for it, not more than every two seconds. */
function watch() {
  const mark = byId('live');
  let wanted = false, busy = false;
  mark.hidden = false;
  mark.textContent = 'live';
  const fetchData = async () => {
    if (busy || !wanted || document.hidden) return;
    busy = true;
    wanted = false;
    try {
      data = await (await fetch('data.json', { cache: 'no-store' })).json();
      if (shape() === parts.shape) refresh(); else build();
    } catch (e) { wanted = true; }
    setTimeout(() => { busy = false; fetchData(); }, 2000);
  };
  const events = new EventSource('events');
  events.addEventListener('changed', () => { wanted = true; fetchData(); });
  events.onopen = () => { mark.classList.remove('lost'); mark.textContent = 'live'; };
  events.onerror = () => { mark.classList.add('lost'); mark.textContent = 'no connection'; };
  document.addEventListener('visibilitychange', fetchData);
}

theme();
build();
document.documentElement.dataset.ready = Math.round(performance.now()); /* milliseconds, for tests */
if (data.live) watch();
setTimeout(drawIdle, 300);
let resized;
addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(refresh, 150); });
