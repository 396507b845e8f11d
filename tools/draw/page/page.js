'use strict';
// The page: one state (N, step, view, chosen node), drawn anew where it changes.

const $ = (id) => document.getElementById(id);
const colours = 8;
const dashes = ['', '11 6', '3 4', '14 4 3 4', '7 3', '2 2', '18 6', '9 3 3 3'];  // so that colour is never alone
const state = {step: 0, view: 'step', lines: 'rank', node: data.root, segment: 'all', colour: 'segment', playing: 0};
let schedule, holdings, last, slope;

function element(name, attributes, parent, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
const plural = (count, one) => `${count} ${one}${count === 1 ? '' : 's'}`;
const blockName = (its) => (data.segments > 1 ? `${its.segment}.${its.block}` : `${its.block}`) +
  (its.segmentCount > 1 ? `+${its.segmentCount - 1}` : '');
const inkOf = (its) => `var(--c${(state.colour === 'block' ? its.block : state.colour === 'phase' ? its.phase || 0 : its.segment) % colours})`;
const linkName = (from, to) => `${data.nodes[from].name} → ${data.nodes[to].name}`;

function tip(target, text) {
  target.addEventListener('pointermove', (event) => {
    $('tip').hidden = false;
    $('tip').textContent = typeof text === 'function' ? text(event) : text;
    const right = event.clientX > innerWidth - 320;
    $('tip').style.left = right ? '' : `${event.clientX + 14}px`;
    $('tip').style.right = right ? `${innerWidth - event.clientX + 14}px` : '';
    $('tip').style.top = `${Math.min(event.clientY + 16, innerHeight - 90)}px`;
  });
  target.addEventListener('pointerleave', () => { $('tip').hidden = true; });
}

// ---- N

const instancesAtMost = 400000;
function setBlocks(wanted) {
  let blocks = data.one_block ? 1 : Math.max(1, Math.floor(wanted) || 1);
  const {mod, residue} = data.residue;
  if (mod) blocks += (((residue - blocks) % mod) + mod) % mod;
  const one = unroll(data, firstBlocks()), two = unroll(data, firstBlocks() + (data.one_block ? 0 : mod || 1));
  const asked = blocks;
  const size = (s) => s.perStep.reduce((sum, at) => sum + at.transfers.length + at.operations.length, 1);
  const growth = Math.max(1, size(two) - size(one)) / (mod || 1);
  while (size(one) + growth * blocks > instancesAtMost && blocks > firstBlocks()) blocks -= mod || 1;
  schedule = unroll(data, blocks);
  // Steady state: what more blocks add.
  const more = unroll(data, data.one_block ? blocks : blocks + 12 * (mod || 1));
  slope = {steps: more.steps - schedule.steps, more};
  holdings = new Holdings(data, schedule);
  last = new Holdings(data, schedule).go(schedule.steps);
  $('blocks').value = blocks;
  $('blocks').disabled = data.one_block;
  $('slider').max = schedule.steps;
  state.step = Math.min(state.step, schedule.steps);
  $('facts').textContent = `${data.facts}; with N = ${blocks}: ${plural(schedule.steps, 'step')}` +
    (blocks < asked ? `; N = ${asked} is not shown: it has more than ${instancesAtMost} transfers and operations` : '');
  drawLines();
  draw();
}
const firstBlocks = () => (data.residue.mod ? data.residue.residue || data.residue.mod : 1);

// Share of its lanes' time that a link carries a block: in steady state, or over all where N adds no steps.
function loadOf(key, lanes) {
  const at = schedule.load.get(key);
  if (!at) return {share: 0, total: 0, most: 0};
  const most = Math.max(...[...at.steps.values()].map((list) => list.length));
  const share = slope.steps > 0 ? (slope.more.load.get(key).total - at.total) / slope.steps : at.total / schedule.steps;
  return {share: share / lanes, total: at.total, most};
}

// ---- the map

function drawMap() {
  const map = $('map');
  map.setAttribute('viewBox', `0 0 ${data.width} ${data.height}`);
  map.style.aspectRatio = `${data.width} / ${data.height}`;
  map.style.minWidth = `${data.width / 2.2}px`;
  map.replaceChildren();
  const dense = data.links.length > 8 * data.nodes.length;
  const wires = element('g', {id: 'links'}, map);
  for (const [from, to, lanes, line] of data.links) {
    const link = element('path', {
      class: `link${lanes > 1 ? ' many' : ''}${dense ? ' thin' : ''}`, 'data-from': from, 'data-to': to, d: line,
    }, wires);
    tip(link, () => describeLink(from, to, lanes));
  }
  element('g', {id: 'arrows'}, map);
  const nodes = element('g', {id: 'nodes'}, map);
  data.nodes.forEach((node, number) => {
    const router = number >= data.ranks, r = data.radius;
    const group = element('g', {
      class: `node ${router ? 'router' : 'rank'}${number === data.root && data.rooted ? ' root' : ''}`, 'data-node': number,
      tabindex: 0, role: 'button', 'aria-label': node.name, transform: `translate(${node.x} ${node.y})`,
    }, nodes);
    if (router) element('rect', {class: 'body', x: -r, y: -r, width: 2 * r, height: 2 * r, rx: 5}, group);
    else element('circle', {class: 'body', r}, group);
    element('circle', {class: 'track', r: r + 4}, group);
    element('path', {class: 'ring'}, group);
    element('text', {dy: '.35em', 'font-size': Math.min(17, r * 0.85)}, group, number);
    group.addEventListener('focus', () => choose(number));
    group.addEventListener('click', () => choose(number));
    tip(group, () => `${node.name}${number === data.root && data.rooted ? ', the root' : ''}\n${heldText(number)}`);
  });
}

function describeLink(from, to, lanes) {
  const load = loadOf(`${from}-${to}`, lanes);
  return `${linkName(from, to)}${lanes > 1 ? `, ${lanes} lanes` : ''}\n${plural(load.total, 'block')} in all, ` +
    `at most ${load.most} in a step; busy ${Math.round(100 * load.share)} % of ` +
    (slope.steps > 0 ? 'a period' : 'the steps');
}

function arrow(parent, its, ink, width, dash, text) {
  const shape = data.arrows[its.key];
  const group = element('g', {
    class: 'arrow', 'data-from': its.from, 'data-to': its.to, 'data-segment': its.segment, 'data-block': its.block,
  }, parent);
  const shaft = element('path', {class: 'shaft', d: shape.line}, group);
  shaft.style.stroke = ink;
  if (width) shaft.style.strokeWidth = width;
  if (dash) shaft.style.strokeDasharray = dash;
  element('path', {d: shape.head}, group).style.fill = ink;
  if (text) element('text', {x: shape.x, y: shape.y, dy: '.35em'}, group, text).style.fill = ink;
  return group;
}

function drawArrows() {
  const layer = $('arrows');
  layer.replaceChildren();
  for (const link of $('links').children) link.removeAttribute('style');
  $('segment-label').hidden = state.view !== 'trees' || data.segments === 1;
  if (state.view === 'step') drawStep(layer);
  else if (state.view === 'trees') drawTrees(layer);
  else drawLoad(layer);
}

// Moves an arrow's label along its line to where it covers no node and no label that was put before.
function labelPlaces() {
  const taken = data.nodes.map((node) => ({x: node.x, y: node.y, w: data.radius, h: data.radius}));
  const covers = (one) => taken.filter((its) => Math.abs(its.x - one.x) < its.w + one.w && Math.abs(its.y - one.y) < its.h + one.h).length;
  return {put(group) {
    const label = group.querySelector('text'), shaft = group.querySelector('.shaft');
    if (!label || taken.length > 1500) return;
    const half = {w: 4 + 4 * label.textContent.length, h: 8}, length = shaft.getTotalLength();
    let best = {x: +label.getAttribute('x'), y: +label.getAttribute('y'), ...half}, least = covers(best);
    for (const part of [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8]) {
      if (least === 0) break;
      const {x, y} = shaft.getPointAtLength(part * length), place = {x, y, ...half}, covered = covers(place);
      if (covered < least) [best, least] = [place, covered];
    }
    label.setAttribute('x', best.x);
    label.setAttribute('y', best.y);
    taken.push(best);
  }};
}

const nowStep = () => schedule.perStep[state.step - 1] || {transfers: [], receives: [], operations: []};
const shows = (its) => state.segment === 'all' || (state.segment - its.segment + data.segments) % data.segments < its.segmentCount;

function drawStep(layer) {
  const {transfers} = nowStep();
  const behind = (its) => its.route.some((node, hop) => hop > 0 &&
    schedule.load.get(`${its.route[hop - 1]}-${node}`).steps.get(state.step - 1).indexOf(its) > 0);
  const places = labelPlaces();
  for (const its of [...transfers].sort((x, y) => behind(x) - behind(y))) {
    // Dashed where another goes over the same link: both are seen.
    const group = arrow(layer, its, inkOf(its), 0, behind(its) ? '10 8' : '', blockName(its));
    places.put(group);
    tip(group, `${linkName(its.from, its.to)}\nblock ${its.block} of segment ${its.segment}` +
      (its.route.length > 2 ? `\nby ${its.route.join(', ')}` : ''));
  }
  for (const [from, to, lanes, line] of data.links) {
    const at = schedule.load.get(`${from}-${to}`);
    const blocks = at && at.steps.get(state.step - 1);
    if (!blocks || blocks.length <= lanes) continue;
    const over = element('path', {class: 'over', d: line, 'data-from': from, 'data-to': to}, layer);
    tip(over, `${linkName(from, to)}: ${blocks.length} blocks on ${plural(lanes, 'lane')}`);
  }
  legend(state.step === 0 ? ['Before the first step. Press → or move the slider.'] :
    [`${plural(transfers.length, 'transfer')}; the number is the block's${data.segments > 1 ? ' (segment.block)' : ''}`,
      ...segmentKeys(transfers),
      ...(data.undrawn > 0 ? [`${plural(data.undrawn, 'link')} that no program uses not drawn`] : [])]);
}

// Every pair that a segment's blocks ever pass, once.
function drawTrees(layer) {
  const edges = new Map();
  for (const {transfers} of schedule.perStep) {
    for (const its of transfers.filter(shows)) {
      const key = `${its.segment}/${its.phase}/${its.key}`;
      if (!edges.has(key)) edges.set(key, {...its, blocks: 0});
      edges.get(key).blocks += 1;
    }
  }
  const used = [...edges.values()];
  for (const its of used) {
    const number = state.colour === 'phase' ? its.phase : its.segment;
    const many = data.segments > 8 && state.segment === 'all';
    const group = arrow(layer, its, inkOf(its), many ? 1.5 : 5 - (number % 3), dashes[number % colours], '');
    tip(group, `${linkName(its.from, its.to)}\nsegment ${its.segment}, phase ${its.phase}: ${plural(its.blocks, 'block')}`);
  }
  legend([`${plural(used.length, 'edge')} that the blocks pass`, ...segmentKeys(used)]);
}

function drawLoad(layer) {
  let most = 0;
  for (const link of $('links').children) {
    const {from, to} = link.dataset;
    const lanes = data.links.find(([a, b]) => a === +from && b === +to)[2];
    const {share} = loadOf(`${from}-${to}`, lanes);
    most = Math.max(most, share);
    const part = Math.min(1, share) * 3, low = Math.min(2, Math.floor(part));
    link.dataset.load = share.toFixed(3);
    link.style.stroke = share === 0 ? '' : `color-mix(in oklab, var(--h${low}), var(--h${low + 1}) ${100 * (part - low)}%)`;
    link.style.strokeWidth = share === 0 ? 1 : 3 + 7 * Math.min(1, share);
  }
  const note = document.createElement('span');
  note.innerHTML = '0 % <i class="ramp"></i>100 % of its lanes’ steps, and wider';
  legend([`the busiest link carries a block in ${Math.round(100 * most)} % of ` +
    (slope.steps > 0 ? 'the steps of a period' : 'the steps'), note]);
}

function segmentKeys(list) {
  const name = state.colour;
  const numbers = [...new Set(list.map((its) => its[name]))].sort((a, b) => a - b).slice(0, colours);
  if (numbers.length < 2 && !(name === 'segment' && data.segments > 1)) return [];
  return numbers.map((number) => {
    const key = document.createElement('span');
    const line = document.createElement('i');
    line.style.borderTopColor = `var(--c${number % colours})`;
    line.style.borderTopStyle = state.view === 'trees' && dashes[number % colours] ? 'dashed' : 'solid';
    key.append(line, `${name} ${number}`);
    return key;
  });
}
function legend(parts) {
  $('legend').replaceChildren(...parts.map((part) => {
    if (typeof part !== 'string') return part;
    const span = document.createElement('span');
    span.textContent = part;
    return span;
  }));
}

// ---- the whole

function draw() {
  $('slider').value = state.step;
  const many = nowStep().transfers.length;
  const text = state.step === 0 ? `before step 0 of ${schedule.steps}` : `step ${state.step - 1} of ${schedule.steps}`;
  $('now').textContent = text;
  $('slider').setAttribute('aria-valuetext', `${text}, ${plural(many, 'transfer')}`);
  drawArrows();
  drawHeld();
  drawList();
  markStep();
}
function go(step) {
  state.step = Math.max(0, Math.min(schedule.steps, step));
  draw();
}
function choose(node) {
  state.node = node;
  drawHeld();
}
function play(on) {
  clearInterval(state.playing);
  state.playing = on ? setInterval(() => (state.step < schedule.steps ? go(state.step + 1) : play(false)), 700) : 0;
  $('play').textContent = on ? '❙❙' : '▶';
}
function pickTab(kind, name) {
  state[kind] = name;
  const list = kind === 'view' ? $('views') : $('lines-tabs');
  for (const tab of list.children) tab.setAttribute('aria-selected', String(tab.dataset[kind] === name));
  if (kind === 'view') drawArrows();
  else drawLines();
}
function theme(name) {
  document.documentElement.dataset.theme = name;
  if (schedule) drawHeld();
}

function listen() {
  $('slider').addEventListener('input', () => go(+$('slider').value));
  $('first').addEventListener('click', () => go(0));
  $('back').addEventListener('click', () => go(state.step - 1));
  $('next').addEventListener('click', () => go(state.step + 1));
  $('play').addEventListener('click', () => play(!state.playing));
  $('blocks').addEventListener('change', () => setBlocks(+$('blocks').value));
  $('colour').addEventListener('change', () => { state.colour = $('colour').value; drawLines(); draw(); });
  $('segment').addEventListener('change', () => {
    state.segment = $('segment').value === 'all' ? 'all' : +$('segment').value;
    drawArrows();
  });
  $('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  for (const tab of $('views').children) tab.addEventListener('click', () => pickTab('view', tab.dataset.view));
  for (const tab of $('lines-tabs').children) tab.addEventListener('click', () => pickTab('lines', tab.dataset.lines));
  tip($('held'), (event) => {
    const {rank, cell} = $('held').at(event.offsetX, event.offsetY);
    if (!cell) return `rank ${rank}`;
    return `rank ${rank}: block ${cell.end.block} of segment ${cell.end.segment}\nof ranks ${setText(cell.here ? cell.here.of : 0n)}`;
  });
  const keys = {
    ArrowRight: () => go(state.step + 1), ArrowLeft: () => go(state.step - 1), Home: () => go(0), End: () => go(schedule.steps),
    ' ': () => play(!state.playing), 1: () => pickTab('view', 'step'), 2: () => pickTab('view', 'trees'),
    3: () => pickTab('view', 'load'), 4: () => pickTab('lines', 'rank'), 5: () => pickTab('lines', 'link'),
    6: () => pickTab('lines', 'trace'),
  };
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || /INPUT|SELECT/.test(event.target.tagName) && event.target.type !== 'range') return;
    if (event.key === ' ' && event.target.tagName === 'BUTTON') return;
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => theme(event.matches ? 'dark' : 'light'));
  addEventListener('resize', () => { drawLines(); drawHeld(); });
}

function begin() {
  theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  $('title').textContent = data.title;
  $('segment').append(new Option('all', 'all'), ...Array.from({length: data.segments}, (_, s) => new Option(s, s)));
  if (data.segments > 8) state.segment = 0;
  $('segment').value = state.segment;
  state.colour = data.segments > 1 ? 'segment' : data.phases > 1 ? 'phase' : 'block';
  $('colour').value = state.colour;
  drawMap();
  listen();
  if (data.trace) openTrace(data.trace);
  setBlocks(data.blocks);
  go(data.step);
}
