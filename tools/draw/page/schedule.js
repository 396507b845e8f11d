'use strict';
// Programs as in docs/descriptor.md: their instances for any N, who sends what to whom in which step, and what every
// node holds after each.

const SEND = 1, RECEIVE = 2, COMBINE = 3, COPY = 4;
const INPUT = 1, OUTPUT = 2, SCRATCH = 3;
const floorDiv = (a, b) => Math.floor(a / b);
const modulo = (a, m) => (m ? ((a % m) + m) % m : a);

const countValue = ([a, b, c, d, e], n) => a + b * n + c * Math.ceil((n + d) / (e || 1));

function termValue(program, [coef, mul, add, div, mod, base, digits, table], i) {
  let value = modulo(floorDiv(mul * i + add, div || 1), mod);
  if (table) value = program.table[table - 1 + value];
  if (digits) {
    let reversed = 0;
    for (let digit = 0; digit < digits; ++digit) {
      reversed = reversed * base + (value % base);
      value = floorDiv(value, base);
    }
    value = reversed;
  }
  return coef * value;
}

function indexValue(program, ref, i) {
  const [base, coef, off, div, mod, first, terms] = program.indices[ref];
  let sum = off + coef * i;
  for (let term = first; term < first + terms; ++term) sum += termValue(program, program.terms[term], i);
  return base + modulo(floorDiv(sum, div || 1), mod);
}

function placeAt(program, place, clamp, blocks, i) {
  if (!place) return null;
  const [buffer, segmentRef, blockRef, slotRef, segmentCount] = place;
  const block = indexValue(program, blockRef, i);
  return {
    buffer,
    segment: indexValue(program, segmentRef, i),
    block: clamp ? Math.min(block, blocks - 1) : block,
    slot: buffer === SCRATCH ? indexValue(program, slotRef, i) : -1,
    segmentCount: segmentCount || 1,
  };
}

// Every instance of one program that exists for N = blocks, by step, then by position in the program.
function expand(program, blocks) {
  const out = [];
  let first = 0, action = 0;
  program.phases.forEach(([period, stepsRef, actions], phase) => {
    const steps = Math.max(0, countValue(program.counts[stepsRef], blocks));
    for (const end = action + actions; action < end; ++action) {
      const [kind, t0Ref, instancesRef, linkRef, clamp, paceRef, into, a, b] = program.actions[action];
      const t0 = countValue(program.counts[t0Ref], blocks);
      const instances = countValue(program.counts[instancesRef], blocks);
      const blockRef = (kind === SEND ? a : into)[2];
      const from = paceRef ? 0 : Math.max(0, Math.ceil(-t0 / period));
      const until = paceRef ? instances : Math.min(instances, floorDiv(steps - 1 - t0, period) + 1);
      for (let i = from; i < until; ++i) {
        const block = indexValue(program, blockRef, i);
        if (block < 0 || (block >= blocks && !clamp)) continue;
        const step = t0 + period * (paceRef ? indexValue(program, paceRef, i) : i);
        if (step < 0 || step >= steps) continue;
        const link = kind <= RECEIVE ? indexValue(program, linkRef, i) : -1;
        out.push({
          step: first + step, phase, action, i, kind, peer: link < 0 ? -1 : program.peers[link],
          into: placeAt(program, into, clamp, blocks, i),
          a: placeAt(program, a, clamp, blocks, i),
          b: placeAt(program, b, clamp, blocks, i),
        });
      }
    }
    first += steps;
  });
  out.sort((x, y) => x.step - y.step || x.action - y.action || x.i - y.i);
  return {instances: out, steps: first};
}

const phaseSteps = (program, blocks) =>
  program.phases.map(([, stepsRef]) => Math.max(0, countValue(program.counts[stepsRef], blocks)));

// The whole schedule for N = blocks: steps, transfers by step, operations by step, load of the links.
function unroll(data, blocks) {
  const expanded = data.programs.map((program) => expand(program, blocks));
  const steps = Math.max(...expanded.map((one) => one.steps));
  const lanes = new Map();
  const perStep = Array.from({length: steps}, () => ({transfers: [], receives: [], operations: []}));
  const lane = (from, to) => {
    const key = from + '-' + to;
    if (!lanes.has(key)) lanes.set(key, {sends: [], receives: []});
    return lanes.get(key);
  };
  expanded.forEach(({instances}, node) => {
    for (const its of instances) {
      its.node = node;
      if (its.kind === SEND) lane(node, its.peer).sends.push(its);
      else if (its.kind === RECEIVE) lane(its.peer, node).receives.push(its);
      else perStep[its.step].operations.push(its);
    }
  });
  // The k-th send over a link is the k-th receive.
  for (const [key, {sends, receives}] of lanes) {
    const [from, to] = key.split('-').map(Number);
    sends.forEach((send, k) => {
      const receive = receives[k];
      const transfer = {
        from, to, key, send, receive, step: send.step, segment: send.a.segment, block: send.a.block,
        segmentCount: send.a.segmentCount, phase: send.phase, route: data.routes[key] || [from, to],
      };
      perStep[send.step].transfers.push(transfer);
      if (receive) perStep[receive.step].receives.push(transfer);
    });
  }
  for (const step of perStep) step.transfers.sort((x, y) => x.from - y.from || x.to - y.to);
  const load = new Map();  // of a link 'from-to': {total, steps: Map(step -> blocks)}
  for (const {transfers} of perStep) {
    for (const its of transfers) {
      for (let hop = 1; hop < its.route.length; ++hop) {
        const key = its.route[hop - 1] + '-' + its.route[hop];
        if (!load.has(key)) load.set(key, {total: 0, steps: new Map()});
        const at = load.get(key);
        at.total += 1;
        if (!at.steps.has(its.step)) at.steps.set(its.step, []);
        at.steps.get(its.step).push(its);
      }
    }
  }
  return {blocks, steps, perStep, load};
}

// What nodes hold: {of: ranks whose input is in it, segment, block} a place, after some number of steps in lock step.
class Holdings {
  constructor(data, schedule) {
    this.data = data;
    this.schedule = schedule;
    this.reset();
  }
  reset() {
    this.done = 0;
    this.nodes = this.data.nodes.map(() => ({[OUTPUT]: new Map(), [SCRATCH]: new Map()}));
    this.wires = new Map();
  }
  // What stood where after `done` steps.
  go(done) {
    if (done < this.done) this.reset();
    while (this.done < done) this.step(this.schedule.perStep[this.done++]);
    return this.nodes;
  }
  key(place, k) {
    if (place.buffer === SCRATCH) return place.slot + k;
    return (place.segment + k) * this.schedule.blocks + place.block;
  }
  read(node, place) {
    return Array.from({length: place.segmentCount}, (_, k) => {
      if (place.buffer === INPUT) return {of: 1n << BigInt(node), segment: place.segment + k, block: place.block};
      return this.nodes[node][place.buffer].get(this.key(place, k)) || {of: 0n, segment: place.segment + k, block: place.block};
    });
  }
  write(node, place, values) {
    values.forEach((value, k) => this.nodes[node][place.buffer].set(this.key(place, k), value));
  }
  step({transfers, receives, operations}) {
    for (const its of transfers) {
      if (!this.wires.has(its.key)) this.wires.set(its.key, []);
      this.wires.get(its.key).push(this.read(its.from, its.send.a));
    }
    for (const its of receives) this.write(its.to, its.receive.into, this.wires.get(its.key).shift());
    for (const its of operations) {
      const a = this.read(its.node, its.a);
      const values = its.kind === COPY ? a
        : this.read(its.node, its.b).map((value, k) => ({...a[k], of: a[k].of | value.of}));
      this.write(its.node, its.into, values);
    }
  }
}

function ones(mask) {
  let count = 0;
  for (; mask; mask &= mask - 1n) ++count;
  return count;
}
