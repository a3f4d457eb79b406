/*
 * Bands: many short events drawn as one thing, since the page merged them or since they stand within a
 * pixel.  The events of a band are in the fine blocks of the data, which are unpacked when somebody
 * looks closely; a row then has single events where its blocks are there.
 */
"use strict";

const BLOCKS_KEPT = 64,
	BLOCKS_AT_ONCE = 16,
	WIDE = 3; /* pixels from which a band is looked into */

const fine = { lines: null, kept: [], timer: 0, failed: false };

function lineOf(number) {
	if (!fine.lines) fine.lines = document.getElementById("fine").textContent.trim().split("\n");
	return fine.lines[number];
}

async function inflate(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* The blocks stand behind the script: the page is drawn before they are read. */
const hasFine = (source) =>
	source.side.timeline.fine_items > 0 && !fine.failed && document.readyState !== "loading";

/* Block `b` of a row: items b × block … */
async function loadBlock(source, b) {
	const bytes = await inflate(bytesOf(lineOf(source.line + b)));
	const there = source.loaded.has(b);
	source.loaded.set(b, decodeRow(bytes, source.side, true));
	if (!there) fine.kept.push([source, b]);
}

/* The blocks that item i was made of. */
function blocksOf(source, i) {
	const size = source.side.timeline.block,
		blocks = [];
	const last = Math.floor((source.first[i + 1] - 1) / size);
	for (let b = Math.floor(source.first[i] / size); b <= last; b++) blocks.push(b);
	return blocks;
}

const isThere = (source, i) => blocksOf(source, i).every((b) => source.loaded.has(b));

/* Calls act(columns, index) for each fine item of item i; their blocks are there. */
function eachFine(source, i, act) {
	const size = source.side.timeline.block;
	for (let k = source.first[i]; k < source.first[i + 1]; k++)
		act(source.loaded.get(Math.floor(k / size)), k % size);
}

/* The row with what is there of its fine items. */
function current(source) {
	const { base } = source;
	if (!source.loaded.size) return base;
	const items = noItems();
	for (let i = 0; i < base.n; i++)
		if (base.count[i] > 1 && isThere(source, i))
			eachFine(source, i, (row, k) => pushItem(items, row, k));
		else pushItem(items, base, i);
	return columnsOf(items);
}

const keyOf = (source, b) => `${source.side.letter}${source.line + b}`;

/* Blocks of bands that are wide enough to be looked into: those that are there, and those that are not. */
function blocksInView(source, found) {
	const { base } = source,
		scale = view.width / (view.to - view.from);
	if (!hasFine(source) || source.side.timeline.bin_ns * 2 * scale < WIDE) return;
	for (let i = firstAfter(base, view.from); i < base.n && base.start[i] < view.to; i++) {
		if (base.count[i] === 1 || (base.end[i] - base.start[i]) * scale < WIDE) continue;
		for (const b of blocksOf(source, i))
			(source.loaded.has(b) ? found.there : found.wanted).set(keyOf(source, b), [source, b]);
	}
}

function lanesInView() {
	const top = view.scroller.scrollTop;
	return view.lanes.filter(
		(l) => !l.group.folded && l.y < top + view.height && l.y + laneHeight(l) > top,
	);
}

/* Rows anew, and what pointed into them. */
function refreshLane(lane) {
	const at = view.chosen && view.chosen.lane === lane ? view.chosen : null;
	const old = at && lane.rows[at.row],
		was = old && { start: old.start[at.i], name: old.name[at.i], count: old.count[at.i] };
	const before = lane.rows.length;
	lane.rows = rowsOfSources(lane);
	for (const s of lane.sources) s.shown = new Set(s.loaded.keys());
	view.links = null;
	if (at) view.chosen = findAgain(lane, was);
	return lane.rows.length !== before;
}

/* The same item, or, of a band that was taken apart, its first. */
function findAgain(lane, was) {
	let first = null;
	for (let k = 0; k < lane.rows.length; k++) {
		const row = lane.rows[k];
		let i = firstAfter(row, was.start);
		while (i > 0 && row.start[i - 1] >= was.start) i--;
		for (; i < row.n && row.start[i] <= was.start; i++) {
			first = first || { lane, row: k, i };
			if (row.name[i] === was.name && row.count[i] === was.count) return { lane, row: k, i };
		}
	}
	return first;
}

/* Forgets the blocks that nobody has looked at for longest, and nobody looks at now. */
function forgetBlocks(found) {
	const old = fine.kept.filter(([s, b]) => !found.there.has(keyOf(s, b)) && !found.wanted.has(keyOf(s, b)));
	const gone = new Set(old.slice(0, Math.max(0, fine.kept.length - BLOCKS_KEPT)));
	for (const [source, b] of gone) source.loaded.delete(b);
	fine.kept = fine.kept.filter((k) => !gone.has(k));
}

/* Whose rows are without what is in view, or have what is there no more.  A block that was only
 * loaded to say names waits until somebody looks closely. */
function staleLanes(found) {
	const sources = new Set();
	for (const [source, b] of [...found.there.values(), ...found.wanted.values()])
		if (source.loaded.has(b) && !source.shown.has(b)) sources.add(source);
	return view.lanes.filter((l) =>
		l.sources.some((s) => sources.has(s) || [...s.shown].some((b) => !s.loaded.has(b))),
	);
}

async function lookClosely() {
	const found = { there: new Map(), wanted: new Map() };
	for (const lane of lanesInView()) for (const s of lane.sources) blocksInView(s, found);
	const room = Math.max(0, Math.min(BLOCKS_AT_ONCE, BLOCKS_KEPT - found.there.size));
	await loadAll([...found.wanted.values()].slice(0, room));
	forgetBlocks(found);
	const stale = staleLanes(found);
	if (!stale.length) return;
	if (stale.map(refreshLane).some(Boolean)) layOut();
	queueDraw();
}

async function loadAll(list) {
	try {
		await Promise.all(list.map(([source, b]) => loadBlock(source, b)));
	} catch {
		fine.failed = true; /* a browser without DecompressionStream: bands stay bands */
	}
}

function queueCloseLook() {
	clearTimeout(fine.timer);
	if (sides.some((s) => s.timeline.fine_items)) fine.timer = setTimeout(() => (fine.look = lookClosely()), 60);
}

const sourceOfPick = (pick) => pick.lane.sources[onDevice(pick.lane) ? 0 : pick.row];

/* The events within the pixel of one: [first, last]. */
function crowdOf(pick) {
	const row = pick.lane.rows[pick.row],
		pixel = Math.floor(xOf(row.start[pick.i]));
	const thin = (i) =>
		i >= 0 &&
		i < row.n &&
		Math.floor(xOf(row.start[i])) === pixel &&
		xOf(row.end[i]) - xOf(row.start[i]) < 1.6;
	let first = pick.i,
		last = pick.i;
	if (!thin(pick.i)) return [first, last];
	while (thin(first - 1)) first--;
	while (thin(last + 1)) last++;
	return [first, last];
}

/* { from, to, events, first, last }, or null for a single event. */
function bandOf(pick) {
	const row = pick.lane.rows[pick.row],
		[first, last] = crowdOf(pick);
	let events = 0,
		to = 0;
	for (let i = first; i <= last; i++) {
		events += row.count[i];
		to = Math.max(to, row.end[i]);
	}
	return events > 1 ? { pick, from: row.start[first], to, events, first, last } : null;
}

function addName(found, row, i) {
	const at = found.get(row.name[i]) || { count: 0, busy: 0, merged: false };
	at.count += row.count[i];
	at.busy += row.busy[i];
	at.merged = at.merged || row.count[i] > 1;
	found.set(row.name[i], at);
}

/* Which item of the coarse row this is; -1: it is one of a block. */
function baseIndex(source, row, i) {
	const { base } = source;
	let at = firstAfter(base, row.start[i]);
	while (at > 0 && base.start[at - 1] >= row.start[i]) at--;
	for (; at < base.n && base.start[at] <= row.start[i]; at++)
		if (base.start[at] === row.start[i] && base.count[at] === row.count[i]) return at;
	return -1;
}

/* The names of an item's events.  Events that the page has merged even in
 * its fine blocks count for the longest of them. */
async function addNames(found, pick, i) {
	const row = pick.lane.rows[pick.row],
		source = sourceOfPick(pick);
	if (row.count[i] === 1 || !source || !hasFine(source)) return addName(found, row, i);
	const at = baseIndex(source, row, i);
	if (at < 0) return addName(found, row, i); /* already a fine one */
	const blocks = blocksOf(source, at).filter((b) => !source.loaded.has(b));
	await loadAll(blocks.map((b) => [source, b]));
	if (isThere(source, at)) eachFine(source, at, (fine, k) => addName(found, fine, k));
	else addName(found, row, i);
}

/* How many of which, those that took longest first. */
async function namesIn(band) {
	const found = new Map();
	for (let i = band.first; i <= band.last; i++) await addNames(found, band.pick, i);
	return [...found].sort(([, a], [, b]) => b.busy - a.busy);
}

const NAMES_SHOWN = 8;

function nameRows(found) {
	const rows = found
		.slice(0, NAMES_SHOWN)
		.map(([name, f]) => [
			`${count(f.count)} ×`,
			`${shortName(name)}${f.merged ? " and shorter ones" : ""}, ${time(f.busy)}`,
		]);
	const rest = found.slice(NAMES_SHOWN).reduce((sum, [, f]) => sum + f.count, 0);
	return rest ? [...rows, [`${count(rest)} ×`, `${count(found.length - NAMES_SHOWN)} others`]] : rows;
}

/* Nearer, until single events show. */
function enterBand(band) {
	const margin = Math.max((band.to - band.from) * 0.03, 5);
	look(band.from - margin, band.to + margin);
}

/* A band that cannot be looked into here can be in a page of its own. */
function closerPage(band) {
	const row = band.pick.lane.rows[band.pick.row],
		source = sourceOfPick(band.pick);
	if (row.count[band.pick.i] === 1) return null;
	if (source && hasFine(source) && baseIndex(source, row, band.pick.i) >= 0) return null;
	const shift = band.pick.lane.side.shift,
		us = (ns) => `${(ns / 1000).toFixed(0)}us`;
	return `weir html --after ${us(band.from - shift - 1000)} --before ${us(band.to - shift + 1000)} FILE`;
}
