'use strict';
// What nodes hold: rings around them, a row of blocks each, and all of one of them.

// The places that the node ends with, and how much of each stands there now: 0 .. 1.
function heldBy(node) {
  const now = holdings.go(state.step)[node];
  const buffer = last[node][OUTPUT].size > 0 ? OUTPUT : data.empty ? SCRATCH : 0;
  if (buffer === 0) return [];
  return [...last[node][buffer]].sort((a, b) => a[0] - b[0]).map(([key, end]) => {
    const here = now[buffer].get(key);
    const fits = here && here.segment === end.segment && here.block === end.block;
    return {key, end, here, part: fits && end.of ? ones(here.of & end.of) / ones(end.of) : 0};
  });
}
function heldText(node) {
  const cells = heldBy(node);
  if (cells.length === 0) return node >= data.ranks ? 'a router: it passes blocks on' : 'it gives, and gets nothing';
  return `${cells.filter((cell) => cell.part === 1).length} of ${plural(cells.length, 'block')} there`;
}

function drawHeld() {
  for (const group of $('nodes').children) {
    const cells = heldBy(+group.dataset.node);
    const part = cells.length ? cells.reduce((sum, cell) => sum + cell.part, 0) / cells.length : 0;
    group.dataset.held = cells.filter((cell) => cell.part === 1).length;
    group.classList.toggle('chosen', +group.dataset.node === state.node);
    const r = data.radius + 4, turn = Math.min(part, 0.9999) * 2 * Math.PI;
    group.querySelector('.ring').setAttribute('d', part === 0 ? '' :
      `M0 ${-r}A${r} ${r} 0 ${part > 0.5 ? 1 : 0} 1 ${r * Math.sin(turn)} ${-r * Math.cos(turn)}`);
  }
  drawMatrix();
  drawNode();
}

function drawMatrix() {
  const rows = data.nodes.map((_, node) => heldBy(node)).slice(0, data.ranks);
  // A broadcast's root has all from the beginning: paler, as nothing comes to it.
  const gives = data.collective === 'broadcast' && data.ranks > 1 ? data.root : -1;
  if (gives >= 0) rows[gives] = rows[gives ? 0 : 1].map((cell) => ({...cell, here: cell.end, part: 1}));
  const most = Math.max(1, ...rows.map((cells) => cells.length));
  const style = getComputedStyle(document.documentElement), scale = devicePixelRatio || 1;
  const height = Math.max(4, Math.min(14, Math.floor(230 / rows.length)));
  const width = Math.max(3, Math.min(16, Math.floor(($('held-scroll').clientWidth - 40) / most)));
  const canvas = $('held'), pen = canvas.getContext('2d');
  canvas.width = (34 + most * width) * scale;
  canvas.height = rows.length * height * scale;
  canvas.style.width = `${34 + most * width}px`;
  canvas.style.height = `${rows.length * height}px`;
  pen.scale(scale, scale);
  pen.font = `${Math.max(9, Math.min(11, height))}px sans-serif`;
  pen.textBaseline = 'middle';
  const gap = width > 4 && height > 5 ? 1 : 0.4;
  rows.forEach((cells, rank) => {
    pen.fillStyle = style.getPropertyValue(rank === state.node ? '--ink' : '--soft');
    if (height >= 8 || rank % 8 === 0) pen.fillText(String(rank), 2, (rank + 0.5) * height);
    cells.forEach((cell, at) => {
      pen.fillStyle = style.getPropertyValue('--faint');
      pen.fillRect(30 + at * width, rank * height, width - gap, height - gap);
      if (cell.part === 0) return;
      pen.fillStyle = style.getPropertyValue(inkOf(cell.end).slice(4, -1));
      const tall = (height - gap) * cell.part;
      pen.globalAlpha = rank === gives ? 0.35 : 1;
      pen.fillRect(30 + at * width, (rank + 1) * height - gap - tall, width - gap, tall);
      pen.globalAlpha = 1;
    });
  });
  canvas.at = (x, y) => ({rank: Math.floor(y / height), cell: (rows[Math.floor(y / height)] || [])[Math.floor((x - 30) / width)]});
  $('held-when').textContent = state.step === 0 ? 'before the first step' : `after step ${state.step - 1}`;
}

const setText = (mask) => {
  const all = [];
  for (let rank = 0; rank < data.ranks; ++rank) if ((mask >> BigInt(rank)) & 1n) all.push(rank);
  const runs = [];
  for (const rank of all) {
    const run = runs[runs.length - 1];
    if (run && run[1] === rank - 1) run[1] = rank;
    else runs.push([rank, rank]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(', ') || 'nobody';
};

function drawNode() {
  const node = state.node, cells = heldBy(node);
  $('node-title').textContent = `${data.nodes[node].name}${node === data.root && data.rooted ? ', the root' : ''}`;
  const detail = document.createElement('div');
  const summary = document.createElement('p');
  summary.textContent = heldText(node);
  const slots = document.createElement('div');
  slots.className = 'slots';
  for (const [slot, value] of [...holdings.nodes[node][SCRATCH]].sort((a, b) => a[0] - b[0]).slice(0, 64)) {
    const span = document.createElement('span');
    span.style.setProperty('--cell', inkOf(value));
    span.textContent = `slot ${slot}: ${blockName(value)} of ${setText(value.of)}`;
    slots.append(span);
  }
  if (cells.length > 0 && cells.length <= 512) {
    const grid = document.createElement('div');
    grid.className = 'cells';
    grid.style.gridTemplateColumns = `repeat(${Math.min(cells.length, 32)}, 15px)`;
    for (const cell of cells) {
      const span = document.createElement('span');
      span.style.setProperty('--cell', inkOf(cell.end));
      span.style.setProperty('--part', `${100 * cell.part}%`);
      span.title = `block ${cell.end.block} of segment ${cell.end.segment}: of ranks ${setText(cell.here ? cell.here.of : 0n)}` +
        ` (in the end of ${setText(cell.end.of)})`;
      grid.append(span);
    }
    detail.append(summary, grid);
  } else {
    detail.append(summary);
  }
  detail.append(slots);
  $('node-detail').replaceChildren(detail);
}

function drawList() {
  const {transfers, operations} = nowStep();
  const lines = transfers.map((its) => `${its.from} → ${its.to}: block ${blockName(its)}` +
    (its.receive && its.receive.step !== its.step ? `, there in step ${its.receive.step}` : ''));
  for (const its of operations) {
    lines.push(`${its.node}: ${its.kind === COPY ? 'copies' : 'combines'} block ${blockName({...its.into, segmentCount: its.into.segmentCount})}`);
  }
  $('list').replaceChildren(...lines.slice(0, 400).map((line) => {
    const item = document.createElement('li');
    item.textContent = line;
    return item;
  }));
}
