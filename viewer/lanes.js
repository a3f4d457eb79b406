/*
 * From the data to the rows of the timeline: columns (typed arrays), by start, whose items do not
 * overlap, so that what is to be drawn is found by halving.
 */
"use strict";

/* ---- from the data to rows ---- */

function decodeRow(text) {
	const v = new Varints(text);
	const items = { start: [], end: [], name: [], count: [], busy: [], detail: [], link: [] };
	let start = 0,
		link = 0;
	while (v.more) {
		start += v.next();
		const length = v.next(),
			name = v.next(),
			several = name % 2 === 1;
		items.start.push(start);
		items.end.push(start + length);
		items.name.push((name - (name % 2)) / 2);
		items.count.push(several ? v.next() : 1);
		items.busy.push(several ? v.next() : length);
		items.detail.push(several ? 0 : v.next());
		link += several ? 0 : v.difference();
		items.link.push(several ? 0 : link);
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
	};
}

const ROWS_OVERLAPPING = 12;

/* What overlaps goes to rows below: each item to the first row that is free. */
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
		rows[at] = rows[at] || {
			start: [],
			end: [],
			name: [],
			count: [],
			busy: [],
			detail: [],
			link: [],
		};
		for (const key of Object.keys(rows[at])) rows[at][key].push(row[key][i]);
	}
	return rows.length > 1 ? rows.map(columnsOf) : [row];
}

const laneRank = { stream: 0, spans: 1, ranges: 2, python: 3, calls: 4, other: 5 };
const onDevice = (lane) => lane.kind === "stream" || lane.kind === "spans";

function laneTitle(lane) {
	const thread = `${lane.thread || "thread"} ${lane.tid}`;
	const process = report.processes.length > 1 ? ` of process ${lane.pid}` : "";
	switch (lane.kind) {
		case "stream":
			return `GPU ${lane.device}, stream ${lane.stream}${process}${report.totals.sampled ? ", samples" : ""}`;
		case "spans":
			return `GPU ${lane.device}, annotations${process}`;
		case "ranges":
			return `Ranges, ${thread}${process}`;
		case "python":
			return `Python, ${thread}${process}`;
		case "other":
			return `Other ranges, ${thread}${process}`;
		default:
			return `CUDA calls, ${thread}${process}`;
	}
}

function laneOrder(a, b) {
	const device = Number(onDevice(b)) - Number(onDevice(a));
	if (device) return device;
	const other = Number(a.kind === "other") - Number(b.kind === "other");
	if (other) return other;
	const keys = onDevice(a) ? ["device", "pid", "context", "stream"] : ["pid", "tid"];
	for (const key of keys) if (a[key] !== b[key]) return a[key] - b[key];
	return laneRank[a.kind] - laneRank[b.kind];
}

function makeLanes() {
	const lanes = data.timeline.lanes
		.map((l) => {
			const rows = l.rows.map(decodeRow);
			const all = onDevice(l) ? rows.flatMap(unfold) : rows;
			return { ...l, title: laneTitle(l), rows: all, folded: false };
		})
		.sort(laneOrder);
	lanes.forEach((l, i) => {
		l.folded =
			(l.kind === "python" && l.rows.length > 6) ||
			(i >= LANES_OPEN && l.rows.length > 2);
	});
	return lanes;
}

const activityKinds = [];

/* Of what ran on a device, by its name. */
function activityKind(index) {
	if (!activityKinds[index]) {
		const name = names[index];
		const copy = /^(memcpy|copy)\b/i.test(name);
		activityKinds[index] = copy ? "copy" : /^(memset|set)\b/i.test(name) ? "set" : "kernel";
	}
	return activityKinds[index];
}

/* What kind of thing an item of a lane is: it decides the colour. */
function kindOf(lane, row, i) {
	if (lane.kind === "calls") return detailOf(row, i).error !== undefined ? "error" : "call";
	if (lane.kind !== "stream")
		return { spans: "span", ranges: "range", python: "python" }[lane.kind] || "other";
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
