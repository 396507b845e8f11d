'use strict';
// Below the map: steps by node, steps by link, and a trace by time.

const slicesAtMost = 40000, flowsAtMost = 6000;
let trace = null;  // {tracks: [{pid, tid, node, name, slices}], flows, end, lines}

function rowsOf(kind) {
  if (kind === 'rank') {
    return data.nodes.map((node, number) => ({name: node.name.replace(/ \(.*/, ''), node: number}));
  }
  return data.links.filter(([from, to]) => schedule.load.has(`${from}-${to}`))
    .map(([from, to, lanes]) => ({name: `${from} → ${to}`, key: `${from}-${to}`, lanes}));
}

function drawLines() {
  $('trace-tools').hidden = state.lines !== 'trace';
  $('lines').replaceChildren();
  $('lines-note').textContent = '';
  if (state.lines === 'trace') drawTrace();
  else drawGantt(state.lines);
  markStep();
}

// Several of a node share its cell.
function cellsOfRanks({left, top, cell, row, gap, put, labels}) {
  schedule.perStep.forEach(({transfers, receives, operations}, step) => {
    const x = left + step * cell + gap / 2, w = cell - gap;
    const share = (list, end, y, kindOf) => {
      const many = new Map(), seen = new Map();
      for (const its of list) many.set(its[end], (many.get(its[end]) || 0) + 1);
      for (const its of list) {
        const node = its[end], k = seen.get(node) || 0, part = w / many.get(node);
        seen.set(node, k + 1);
        put(node, inkOf(its), x + k * part, part - (many.get(node) > 1 ? 0.6 : 0), top + (node + y) * row + 1, row / 2 - 1.2, kindOf);
        const name = blockName(its);
        if (kindOf === 'send' && row > 14 && part >= 6 * name.length + 2) {
          labels.push([x + (k + 0.5) * part, top + (node + y + 0.25) * row + 4, name]);
        }
      }
    };
    share(transfers, 'from', 0, 'send');
    share(receives, 'to', 0.5, 'receive');
    for (const its of operations) put(its.node, 'var(--ink)', x + w - 3, 3, top + (its.node + 0.5) * row - 1.5, 3, 'operation');
  });
}

function cellsOfLinks({left, top, cell, row, gap, put, labels}, rows) {
  rows.forEach((its, at) => {
    for (const [step, list] of schedule.load.get(its.key).steps) {
      const x = left + step * cell + gap / 2, each = (row - 2) / list.length;
      list.forEach((one, k) => put(at, inkOf(one), x, cell - gap, top + at * row + 1 + k * each, each - 0.3, 'send'));
      if (list.length > its.lanes) put(at, 'var(--bad)', x, cell - gap, top + (at + 1) * row - 2, 2, 'over');
      else if (row > 14 && cell >= 24) labels.push([x + cell / 2, top + (at + 0.5) * row + 4, list.map(blockName).join(' ')]);
    }
  });
}

// One path a row and ink: a page of 64 nodes stays light.
function drawGantt(kind) {
  const rows = rowsOf(kind), left = 84, top = 22;
  const room = $('lines').clientWidth - left - 20;
  const cell = Math.max(3, Math.min(34, room / Math.max(1, schedule.steps)));
  const row = rows.length > 100 ? 8 : rows.length > 40 ? 11 : rows.length > 24 ? 15 : 24;
  const width = left + cell * schedule.steps + 14, height = top + row * rows.length + 4;
  const svg = element('svg', {id: 'gantt', width, height, 'data-kind': kind, role: 'img', 'aria-label': `steps by ${kind}`}, $('lines'));
  const every = Math.max(1, Math.ceil(26 / cell));
  for (let step = 0; step < schedule.steps; step += every) {
    element('text', {x: left + (step + 0.5) * cell, y: 14, 'text-anchor': 'middle'}, svg, step);
  }
  rows.forEach((its, at) => {
    const y = top + (at + 0.5) * row;
    element('line', {class: 'row', x1: left, x2: width - 14, y1: y, y2: y}, svg);
    if (row >= 11 || at % 2 === 0) element('text', {class: 'name', x: left - 8, y: y + 4, 'data-row': at}, svg, its.name);
  });
  const paths = new Map();
  const put = (at, ink, x, w, y, h, kindOf) => {
    const key = `${at}/${ink}/${kindOf}`;
    if (!paths.has(key)) paths.set(key, {ink, kindOf, d: ''});
    paths.get(key).d += `M${x.toFixed(2)} ${y.toFixed(2)}h${w.toFixed(2)}v${h.toFixed(2)}h${(-w).toFixed(2)}z`;
  };
  const gap = cell > 8 ? 1.5 : 0.3;
  const labels = [];
  const grid = {left, top, cell, row, gap, put, labels};
  if (kind === 'rank') cellsOfRanks(grid);
  else cellsOfLinks(grid, rows);
  for (const {ink, kindOf, d} of paths.values()) {
    const path = element('path', {d, class: kindOf}, svg);
    path.style.fill = ink;
    if (kindOf === 'receive') path.style.fillOpacity = 0.4;
  }
  for (const [x, y, text] of labels) {
    element('text', {class: 'block', x, y}, svg, text);
  }
  let first = 0;
  for (const steps of phaseSteps(data.programs[0], schedule.blocks)) {
    first += steps;
    if (first < schedule.steps) element('line', {class: 'phase-line', x1: left + first * cell, x2: left + first * cell, y1: top - 6, y2: height}, svg);
  }
  for (let step = 0; step < schedule.steps; ++step) {
    const column = element('rect', {class: 'column', 'data-step': step, x: left + step * cell, y: top, width: cell, height: height - top - 4}, svg);
    column.addEventListener('click', () => go(step + 1));
  }
  tip(svg, (event) => {
    const box = svg.getBoundingClientRect();
    const step = Math.floor((event.clientX - box.left - left) / cell), at = Math.floor((event.clientY - box.top - top) / row);
    const its = rows[at], now = schedule.perStep[step];
    if (!its || !now) return its ? its.name : '';
    const here = kind === 'link' ? now.transfers.filter((one) => one.route.some((node, hop) => `${one.route[hop - 1]}-${node}` === its.key))
      : now.transfers.filter((one) => one.from === at || one.to === at);
    const lines = here.slice(0, 8).map((one) => `${one.from} → ${one.to}: block ${blockName(one)}`);
    return `step ${step}, ${its.name}\n${lines.join('\n') || 'idle'}`;
  });
  $('lines-note').textContent = kind === 'rank' ? 'Above: what a node sends; below, paler: what it receives; dots: combines and copies. A click goes to the step.'
    : 'Links that carry anything; two in a cell go at once, red below them: more than the link has lanes.';
}

function markStep() {
  for (const one of $('lines').querySelectorAll('.column.now, .slice.now')) one.classList.remove('now');
  const step = state.step - 1;
  const column = $('lines').querySelector(`.column[data-step='${step}']`);
  if (column) column.classList.add('now');
  for (const slice of $('lines').querySelectorAll(`.slice[data-step='${step}']`)) slice.classList.add('now');
}

// ---- traces

// Takes the Trace Event Format, as --trace of 'espalier simulate' and 'espalier run' writes it.
function openTrace(json) {
  const events = Array.isArray(json) ? json : json.traceEvents;
  if (!Array.isArray(events)) throw new Error('no traceEvents in it');
  const processes = new Map(), tracks = new Map(), ends = new Map();
  const trackOf = ({pid, tid}) => {
    const key = `${pid}/${tid}`;
    if (!tracks.has(key)) tracks.set(key, {pid, tid, name: `${tid}`, slices: []});
    return tracks.get(key);
  };
  const flows = [];
  let end = 0;
  for (const event of events) {
    if (event.ph === 'M' && event.name === 'process_name') processes.set(event.pid, event.args.name);
    if (event.ph === 'M' && event.name === 'thread_name') trackOf(event).name = event.args.name;
    if (event.ph === 'X') {
      trackOf(event).slices.push(event);
      end = Math.max(end, event.ts + event.dur);
    }
    if (event.ph === 's') ends.set(event.id, event);
    if (event.ph === 'f' && ends.has(event.id)) flows.push([ends.get(event.id), event]);
  }
  const list = [...tracks.values()].sort((a, b) => a.pid - b.pid || a.tid - b.tid);
  trace = {processes, tracks: list, flows, end: Math.max(end, 1e-3), about: json.otherData || {}};
  pickTab('lines', 'trace');
}

// Returns how many slices it drew.
function drawTracks(svg, {left, scale, row, places}) {
  let drawn = 0, pid = -1;
  for (const track of trace.tracks) {
    const at = places.get(`${track.pid}/${track.tid}`);
    if (track.pid !== pid) element('text', {class: 'name process', x: left - 76, y: at + 9, 'data-pid': track.pid}, svg,
      (trace.processes.get(track.pid) || `${track.pid}`).replace(/ \(.*/, ''));
    pid = track.pid;
    element('text', {class: 'name track', x: left - 6, y: at + 9, 'data-pid': track.pid, 'data-tid': track.tid}, svg, track.name.replace('combines and copies', 'combines'));
    for (const slice of track.slices) {
      if (++drawn > slicesAtMost) break;
      const rect = element('rect', {
        class: `slice ${slice.cat}`, x: left + slice.ts * scale, y: at + 1, width: Math.max(0.6, slice.dur * scale), height: row - 2,
        'data-pid': track.pid, 'data-tid': track.tid, 'data-step': slice.args.step,
      }, svg);
      if (slice.cat !== 'step') {
        const ink = inkOf({segment: slice.args.segment, block: slice.args.block, phase: 0});
        rect.style.fill = ink;
        rect.style.stroke = slice.cat === 'receive' ? ink : 'none';
      }
    }
  }
  return drawn;
}

function drawTrace() {
  if (!trace) {
    $('lines-note').textContent = 'No trace yet: open one with the link above, or drop it anywhere here (espalier simulate FILE --trace trace.json writes one).';
    return;
  }
  const left = 190, top = 22, row = 11, between = 5;
  const zoom = Math.pow(1.08, +$('zoom').value);
  const scale = ($('lines').clientWidth - left - 24) * zoom / trace.end;
  const places = new Map();
  let y = top, pid = -1;
  for (const track of trace.tracks) {
    if (track.pid !== pid) y += pid === -1 ? 0 : between;
    pid = track.pid;
    places.set(`${track.pid}/${track.tid}`, y);
    y += row;
  }
  const svg = element('svg', {id: 'trace', width: left + trace.end * scale + 24, height: y + 6, role: 'img', 'aria-label': 'trace'}, $('lines'));
  const unit = Math.pow(10, Math.ceil(Math.log10(90 / scale)));
  for (let at = 0; at <= trace.end; at += unit) {
    element('line', {class: 'row', x1: left + at * scale, x2: left + at * scale, y1: top - 4, y2: y}, svg);
    element('text', {x: left + at * scale + 3, y: 14}, svg, unit >= 1000 ? `${at / 1000} ms` : `${+at.toFixed(3)} µs`);
  }
  const drawn = drawTracks(svg, {left, scale, row, places});
  if (trace.flows.length <= flowsAtMost && $('flows').checked) {
    for (const [from, to] of trace.flows) {
      const x1 = left + from.ts * scale, y1 = places.get(`${from.pid}/${from.tid}`) + row / 2;
      const x2 = left + to.ts * scale, y2 = places.get(`${to.pid}/${to.tid}`) + row / 2;
      element('path', {class: 'flow', d: `M${x1.toFixed(1)} ${y1}L${x2.toFixed(1)} ${y2}`}, svg);
    }
  }
  const sliceAt = (event) => {
    const rect = event.target.closest('.slice');
    if (!rect) return null;
    const track = trace.tracks.find(({pid: p, tid}) => p === +rect.dataset.pid && tid === +rect.dataset.tid);
    return track.slices.find((slice) => Math.abs(left + slice.ts * scale - +rect.getAttribute('x')) < 1e-6);
  };
  tip(svg, (event) => {
    const slice = sliceAt(event);
    if (!slice) return trace.about.clock || '';
    const what = slice.cat === 'step' ? slice.name : `${slice.cat} block ${slice.args.block} of segment ${slice.args.segment}` +
      (slice.args.peer === undefined ? '' : ` ${slice.cat === 'send' ? 'to' : 'from'} ${slice.args.peer}`) + `, step ${slice.args.step}`;
    return `${what}\n${slice.ts.toFixed(3)} µs, for ${slice.dur.toFixed(3)} µs`;
  });
  svg.addEventListener('click', (event) => {
    const slice = sliceAt(event);
    if (slice) go(slice.args.step + 1);
  });
  const about = trace.about;
  $('lines-note').textContent = `${plural(drawn, 'slice')}${drawn > slicesAtMost ? ' (not all are drawn)' : ''}, ${plural(trace.flows.length, 'arrow')}` +
    `${trace.flows.length > flowsAtMost ? ' (too many to draw)' : ''}; ${about.bytes === undefined ? '' : `${plural(about.bytes, 'byte')}, N = ${about.blocks}; `}${about.clock || ''}` +
    (about.schedule_digest && about.schedule_digest !== data.digest ? ' — of another schedule than this page' : '');
  if (about.blocks && schedule && about.blocks !== schedule.blocks) $('lines-note').textContent += ` — the page shows N = ${schedule.blocks}`;
}

async function readTrace(file) {
  try {
    openTrace(JSON.parse(await file.text()));
  } catch (error) {
    pickTab('lines', 'trace');
    $('lines-note').textContent = `${file.name} is not a trace: ${error.message}`;
  }
}

function listenForTraces() {
  $('file').addEventListener('change', () => $('file').files[0] && readTrace($('file').files[0]));
  $('zoom').addEventListener('input', drawLines);
  $('flows').addEventListener('change', drawLines);
  addEventListener('dragover', (event) => { event.preventDefault(); document.body.classList.add('drop'); });
  addEventListener('dragleave', () => document.body.classList.remove('drop'));
  addEventListener('drop', (event) => {
    event.preventDefault();
    document.body.classList.remove('drop');
    if (event.dataTransfer.files[0]) readTrace(event.dataTransfer.files[0]);
  });
}

listenForTraces();
begin();
