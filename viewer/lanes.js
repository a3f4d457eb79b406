/*
 * From the data to the rows of the timeline: columns (typed arrays), by start, whose items do not
 * overlap, so that what is to be drawn is found by halving.
 *
 * Lanes stand in groups: those of a device, and those of a process; of two recordings each has its own.
 */
"use strict";

const noItems = () => ({
	start: [],
	end: [],
	name: [],
	count: [],
	busy: [],
	detail: [],
	link: [],
	parts: [],
});

/* The places of items' numbers: of a row one after the other, of a block each kind on its own. */
function columnsIn(bytes, fine) {
	const v = new Varints(bytes);
	if (!fine) return Array(7).fill(v);
	const lengths = Array.from({ length: 7 }, () => v.next());
	let at = v.at;
	return lengths.map((n) => new Varints(bytes.subarray(at, (at += n))));
}

/* `fine`: a block, whose items have no parts. */
function decodeRow(bytes, side, fine) {
	const [gaps, lengths, codes, counts, busy, details, links] = columnsIn(bytes, fine);
	const items = noItems();
	let end = 0,
		link = 0;
	while (gaps.more) {
		const start = end + gaps.difference(),
			length = lengths.next(),
			code = codes.next(),
			several = code % 2 === 1,
			name = (code - (code % 2)) / 2;
		items.start.push(start + side.shift);
		items.end.push(start + length + side.shift);
		end = start + length;
		items.name.push(side.nameOf ? side.nameOf[name] : name);
		const number = several ? counts.next() : 2,
			events = (number - (number % 2)) / 2;
		items.count.push(events);
		items.busy.push(several ? busy.next() : length);
		items.parts.push(fine ? 1 : number % 2 ? busy.next() : events);
		const detail = several ? 0 : details.next();
		items.detail.push(detail && side.nameOf ? detail + side.firstDetail : detail);
		link += several ? 0 : links.difference();
		items.link.push(several || !link ? 0 : side.nameOf ? link + LINKS_OF_B : link);
	}
	return columnsOf(items);
}

function columnsOf(items) {
	return {
		n: items.start.length,
		start: Float64Array.from(items.start),
		end: Float64Array.from(items.end),
		busy: Float64Array.from(items.busy),
		name: Uint32Array.from(items.name),
		count: Float64Array.from(items.count),
		detail: Uint32Array.from(items.detail),
		link: Uint32Array.from(items.link),
		parts: Uint32Array.from(items.parts),
	};
}

function pushItem(to, row, i) {
	for (const key in to) to[key].push(row[key][i]);
}

const ROWS_OVERLAPPING = 12;

/* An item that overlaps goes to a row below: each item to the first row that is free. */
function unfold(row) {
	const ends = [],
		rows = [];
	for (let i = 0; i < row.n; i++) {
		if (row.count[i] > 1 && i + 1 < row.n)
			/* merged: a bin's end may pass the next one's begin */
			row.end[i] = Math.min(row.end[i], Math.max(row.start[i], row.start[i + 1]));
		let at = ends.findIndex((end) => end <= row.start[i]);
		if (at < 0) at = Math.min(ends.length, ROWS_OVERLAPPING - 1);
		ends[at] = row.end[i];
		pushItem((rows[at] = rows[at] || noItems()), row, i);
	}
	return rows.length > 1 ? rows.map(columnsOf) : [row];
}

const laneRank = { stream: 0, spans: 1, ranges: 2, python: 3, calls: 4, other: 5, requests: 6 };
const onDevice = (lane) => lane.kind === "stream" || lane.kind === "spans";

/* A lane's name within its group. */
function laneLabel(lane) {
	const thread = `${lane.thread || "thread"} ${lane.tid}`;
	const process =
		onDevice(lane) && lane.side.report.processes.length > 1 ? ` of process ${lane.pid}` : "";
	switch (lane.kind) {
		case "stream":
			return `stream ${lane.stream}${process}${lane.side.report.totals.sampled ? ", samples" : lane.side.report.totals.reconstructed ? ", reconstructed" : ""}`;
		case "spans":
			return `annotations${process}`;
		case "ranges":
			return `ranges, ${thread}`;
		case "python":
			return `Python, ${thread}`;
		case "other":
			return `other ranges, ${thread}`;
		case "requests":
			return "requests";
		default:
			return `CUDA calls, ${thread}`;
	}
}

/* The recording comes first: "B · GPU 0 · NVIDIA H200". */
function groupTitle(lane) {
	const { report: r, letter } = lane.side;
	const parts = letter ? [letter] : [];
	if (onDevice(lane)) {
		const device = r.devices.find((d) => d.device === lane.device);
		parts.push(`GPU ${lane.device}`, (device && device.name) || "");
	} else {
		const process = r.processes.find((p) => p.pid === lane.pid);
		parts.push(`${lane.kind === "requests" ? "server, " : ""}process ${lane.pid}`, (process && process.program) || "");
	}
	return parts.filter(Boolean).join(" · ");
}

/* Requests to a server over the devices, then those; the same of two recordings below one another. */
function laneOrder(a, b) {
	const served = Number(b.kind === "requests") - Number(a.kind === "requests");
	if (served) return served;
	const device = Number(onDevice(b)) - Number(onDevice(a));
	if (device) return device;
	if (!onDevice(a) && a.side !== b.side) return a.side.letter < b.side.letter ? -1 : 1;
	if (onDevice(a) && a.device !== b.device) return a.device - b.device;
	if (a.side !== b.side) return a.side.letter < b.side.letter ? -1 : 1;
	if (a.pid !== b.pid) return a.pid - b.pid;
	const other = Number(a.kind === "other") - Number(b.kind === "other");
	if (other) return other;
	for (const key of onDevice(a) ? ["context", "stream"] : ["tid"])
		if (a[key] !== b[key]) return a[key] - b[key];
	return laneRank[a.kind] - laneRank[b.kind];
}

/* A row as it stands in the data, and which of the fine blocks are its own.  first[i]: of the items in
 * them, the first that item i was made of. */
function sourceOf(columns, side, line) {
	const first = new Float64Array(columns.n + 1);
	for (let i = 0; i < columns.n; i++) first[i + 1] = first[i] + columns.parts[i];
	return { base: columns, side, first, line, loaded: new Map(), shown: new Set() };
}

const rowsOfSources = (lane) =>
	lane.sources.flatMap((s) => (onDevice(lane) ? unfold(current(s)) : [current(s)]));

function lanesOf(side, line) {
	const block = side.timeline.block;
	return side.timeline.lanes.map((l) => {
		const sources = l.rows.map((text) => {
			const source = sourceOf(decodeRow(bytesOf(text), side), side, line.next);
			line.next += Math.ceil(source.first[source.base.n] / block);
			return source;
		});
		return { ...l, side, sources, folded: false };
	});
}

/* So that both begin at the same place of the axis. */
function alignOther(lanes) {
	const begin = (side) =>
		lanes
			.filter((l) => l.side === side)
			.flatMap((l) => l.sources)
			.reduce((a, s) => (s.base.n ? Math.min(a, s.base.start[0]) : a), Infinity);
	const shift = begin(data) - begin(data.other);
	if (!Number.isFinite(shift)) return;
	data.other.shift = shift;
	for (const lane of lanes)
		if (lane.side === data.other)
			for (const { base } of lane.sources)
				for (let i = 0; i < base.n; i++) {
					base.start[i] += shift;
					base.end[i] += shift;
				}
}

function makeLanes() {
	const line = { next: 0 };
	const lanes = sides
		.flatMap((side) => {
			if (!side.timeline.fine_items) return lanesOf(side, { next: 0 });
			return lanesOf(side, line);
		})
		.filter((l) => l.sources.some((s) => s.base.n));
	if (two) alignOther(lanes);
	lanes.sort(laneOrder);
	lanes.forEach((l, i) => {
		l.rows = rowsOfSources(l);
		l.label = laneLabel(l);
		l.title = `${groupTitle(l)}, ${l.label}`;
		l.folded =
			(l.kind === "python" && l.rows.length > 6) ||
			(i >= LANES_OPEN && l.rows.length > 2);
	});
	return lanes;
}

/* Groups in the order of their lanes; of many, those below the first are folded. */
function makeGroups(lanes) {
	const groups = [];
	let shown = 0;
	for (const lane of lanes) {
		const title = groupTitle(lane);
		let group = groups[groups.length - 1];
		if (!group || group.title !== title)
			groups.push((group = { title, lanes: [], folded: false, device: onDevice(lane) }));
		group.lanes.push(lane);
		lane.group = group;
	}
	for (const g of groups) {
		g.folded = shown > LANES_OPEN;
		shown += g.lanes.length;
	}
	return groups;
}

const activityKinds = [];

/* The kind of a device activity, by its name. */
function activityKind(index) {
	if (!activityKinds[index]) {
		const name = names[index];
		const copy = /^(memcpy|copy)\b/i.test(name);
		activityKinds[index] = copy ? "copy" : /^(memset|set)\b/i.test(name) ? "set" : "kernel";
	}
	return activityKinds[index];
}

/* The kind of an item of a lane: it decides the colour. */
function kindOf(lane, row, i) {
	if (lane.kind === "calls") return detailOf(row, i).error !== undefined ? "error" : "call";
	if (lane.kind !== "stream")
		return { spans: "span", ranges: "range", python: "python", requests: "range" }[lane.kind] || "other";
	return activityKind(row.name[i]);
}

const noDetail = {};

function detailOf(row, i) {
	return row.detail[i] ? data.timeline.details[row.detail[i] - 1] : noDetail;
}

/* The first item that ends after t. */
function firstAfter(row, t) {
	let low = 0,
		high = row.n;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (row.end[middle] <= t) low = middle + 1;
		else high = middle;
	}
	return low;
}
