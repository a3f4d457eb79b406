/*
 * The timeline: lanes of streams, ranges and calls on one axis of time, drawn on a canvas.
 *
 * A row is a set of columns (typed arrays), by start, whose items do not overlap, so what is to be
 * drawn is found by halving.  Items narrower than a pixel are added up, pixel by pixel: the darker,
 * the busier.
 */
"use strict";

const ROW = 17, HEAD = 21, AXIS = 24, LANES_OPEN = 40;

/* ---- from the data to rows ---- */

function decodeRow(text) {
	const v = new Varints(text);
	const items = { start: [], end: [], name: [], count: [], busy: [], detail: [], link: [] };
	let start = 0, link = 0;
	while (v.more) {
		start += v.next();
		const length = v.next(), name = v.next(), several = name % 2 === 1;
		items.start.push(start);
		items.end.push(start + length);
		items.name.push((name - name % 2) / 2);
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
		start: Float64Array.from(items.start), end: Float64Array.from(items.end),
		busy: Float64Array.from(items.busy), name: Uint32Array.from(items.name),
		count: Float64Array.from(items.count), detail: Uint32Array.from(items.detail),
		link: Uint32Array.from(items.link),
	};
}

const ROWS_OVERLAPPING = 12;

/* What overlaps goes to rows below: each item to the first row that is free. */
function unfold(row) {
	const ends = [], rows = [];
	for (let i = 0; i < row.n; i++) {
		if (row.count[i] > 1 && i + 1 < row.n) /* merged: a bin's end may pass the next one's begin */
			row.end[i] = Math.min(row.end[i], Math.max(row.start[i], row.start[i + 1]));
		let at = ends.findIndex((end) => end <= row.start[i]);
		if (at < 0)
			at = Math.min(ends.length, ROWS_OVERLAPPING - 1);
		ends[at] = row.end[i];
		rows[at] = rows[at] || { start: [], end: [], name: [], count: [], busy: [], detail: [], link: [] };
		for (const key of Object.keys(rows[at]))
			rows[at][key].push(row[key][i]);
	}
	return rows.length > 1 ? rows.map(columnsOf) : [row];
}

const laneRank = { stream: 0, spans: 1, ranges: 2, python: 3, calls: 4, other: 5 };
const onDevice = (lane) => lane.kind === "stream" || lane.kind === "spans";

function laneTitle(lane) {
	const thread = `${lane.thread || "thread"} ${lane.tid}`;
	const process = report.processes.length > 1 ? ` of process ${lane.pid}` : "";
	switch (lane.kind) {
	case "stream": return `GPU ${lane.device}, stream ${lane.stream}${process}`;
	case "spans": return `GPU ${lane.device}, annotations${process}`;
	case "ranges": return `Ranges, ${thread}${process}`;
	case "python": return `Python, ${thread}${process}`;
	case "other": return `Other ranges, ${thread}${process}`;
	default: return `CUDA calls, ${thread}${process}`;
	}
}

function laneOrder(a, b) {
	const device = Number(onDevice(b)) - Number(onDevice(a));
	if (device)
		return device;
	const keys = onDevice(a) ? ["device", "pid", "context", "stream"] : ["pid", "tid"];
	for (const key of keys)
		if (a[key] !== b[key])
			return a[key] - b[key];
	return laneRank[a.kind] - laneRank[b.kind];
}

function makeLanes() {
	const lanes = data.timeline.lanes.map((l) => {
		const rows = l.rows.map(decodeRow);
		const all = onDevice(l) ? rows.flatMap(unfold) : rows;
		return { ...l, title: laneTitle(l), rows: all, folded: false };
	}).sort(laneOrder);
	lanes.forEach((l, i) => {
		l.folded = (l.kind === "python" && l.rows.length > 6) || (i >= LANES_OPEN && l.rows.length > 2);
	});
	return lanes;
}

/* What kind of thing an item of a lane is: it decides the colour. */
function kindOf(lane, row, i) {
	if (lane.kind === "calls")
		return detailOf(row, i).error !== undefined ? "error" : "call";
	if (lane.kind !== "stream")
		return { spans: "span", ranges: "range", python: "python" }[lane.kind] || "other";
	const name = names[row.name[i]];
	return /^(memcpy|copy)\b/i.test(name) ? "copy" : /^(memset|set)\b/i.test(name) ? "set" : "kernel";
}

const noDetail = {};

function detailOf(row, i) {
	return row.detail[i] ? data.timeline.details[row.detail[i] - 1] : noDetail;
}

/* The first item that ends after t. */
function firstAfter(row, t) {
	let low = 0, high = row.n;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (row.end[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- the view ---- */

const view = {
	lanes: [], lo: 0, hi: 1, from: 0, to: 1, width: 0, height: 0, tall: 0,
	canvas: null, map: null, scroller: null, spacer: null, chosen: null, panel: null, span: null,
	links: null, queued: false,
};

function extent() {
	view.lo = Infinity;
	view.hi = -Infinity;
	for (const lane of view.lanes)
		for (const row of lane.rows)
			if (row.n) {
				view.lo = Math.min(view.lo, row.start[0]);
				view.hi = Math.max(view.hi, row.end[row.n - 1]);
			}
	if (view.hi <= view.lo)
		view.hi = view.lo + 1;
	view.from = view.lo;
	view.to = view.hi;
}

const laneHeight = (lane) => HEAD + (lane.folded ? 1 : Math.max(1, lane.rows.length)) * ROW + 5;

function layOut() {
	let y = 0;
	for (const lane of view.lanes) {
		lane.y = y;
		y += laneHeight(lane);
	}
	view.tall = y;
	view.spacer.style.height = AXIS + y + "px";
	queueDraw();
}

const xOf = (t) => (t - view.from) / (view.to - view.from) * view.width;
const timeAt = (x) => view.from + x / view.width * (view.to - view.from);

/* Moves the view; it stays near what there is. */
function look(from, to) {
	const whole = view.hi - view.lo, margin = whole * 0.04;
	const span = Math.min(Math.max(to - from, 20), whole + 2 * margin);
	const middle = (from + to) / 2;
	view.from = Math.min(Math.max(middle - span / 2, view.lo - margin), view.hi + margin - span);
	view.to = view.from + span;
	queueDraw();
}

function zoom(factor, x) {
	const t = timeAt(x === undefined ? view.width / 2 : x);
	look(t - (t - view.from) * factor, t + (view.to - t) * factor);
}

function pan(part) {
	const step = (view.to - view.from) * part;
	look(view.from + step, view.to + step);
}

function queueDraw() {
	if (view.queued)
		return;
	view.queued = true;
	requestAnimationFrame(() => {
		view.queued = false;
		drawTimeline();
	});
}

/* ---- drawing ---- */

function drawAxis(c) {
	const step = niceStep(view.to - view.from, view.width / 120);
	c.fillStyle = theme.panel;
	c.fillRect(0, 0, view.width, AXIS);
	c.font = "11px " + theme.sans;
	c.textBaseline = "middle";
	for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
		const x = Math.round(xOf(t)) + 0.5;
		c.fillStyle = theme.line;
		c.fillRect(x - 0.5, AXIS - 5, 1, view.height);
		c.fillStyle = theme.soft;
		c.fillText(axisTime(t, step), x + 4, AXIS / 2);
	}
	c.fillStyle = theme.line;
	c.fillRect(0, AXIS - 1, view.width, 1);
}

function isDimmed(row, i) {
	if (!search.matches || search.matches[row.name[i]])
		return false;
	const kernel = detailOf(row, i).kernel;
	return kernel === undefined || !search.matches[kernel];
}

function label(c, lane, row, i, x, y, w) {
	const detail = detailOf(row, i);
	let text = shortName(row.name[i]);
	if (row.count[i] > 1)
		text = count(row.count[i]) + " × " + text;
	else if (detail.kernel !== undefined && w > 170)
		text += "  " + shortName(detail.kernel);
	putLabel(c, text, x, y + ROW / 2 - 0.5, w);
}

/* One row; what is narrower than a pixel is collected in `thin`. */
function drawRow(c, lane, row, y) {
	const thin = { x: -1, cover: 0, kind: "", name: 0, lit: false };
	const scale = view.width / (view.to - view.from);
	const flush = () => {
		if (thin.x < 0 || !thin.cover)
			return;
		c.globalAlpha = (search.matches && !thin.lit ? 0.2 : 1) * Math.min(1, 0.3 + 0.7 * thin.cover);
		c.fillStyle = search.matches && thin.lit ? theme.mark : colour(thin.kind, thin.name);
		c.fillRect(thin.x, y, 1, ROW - 2);
	};
	for (let i = firstAfter(row, view.from); i < row.n && row.start[i] < view.to; i++) {
		const x = (row.start[i] - view.from) * scale, w = (row.end[i] - row.start[i]) * scale;
		if (w < 1.6) {
			const at = Math.max(0, Math.floor(x));
			if (at !== thin.x) {
				flush();
				Object.assign(thin, { x: at, cover: 0, name: row.name[i], kind: kindOf(lane, row, i), lit: false });
			}
			thin.cover += Math.max(row.busy[i] * scale, 0.04);
			thin.lit = thin.lit || (search.matches !== null && !isDimmed(row, i));
			continue;
		}
		flush();
		thin.x = -1;
		drawItem(c, lane, row, i, Math.max(x, -2), y, Math.min(x + w, view.width + 2));
	}
	flush();
	c.globalAlpha = 1;
}

function drawItem(c, lane, row, i, x, y, right) {
	const w = Math.max(1, right - x - (right - x > 3 ? 1 : 0)), dim = isDimmed(row, i);
	const several = row.count[i] > 1;
	const density = several ? 0.35 + 0.65 * Math.min(1, row.busy[i] / (row.end[i] - row.start[i])) : 1;
	c.globalAlpha = (dim ? 0.22 : 1) * density;
	c.fillStyle = colour(kindOf(lane, row, i), row.name[i]);
	c.fillRect(x, y, w, ROW - 2);
	c.globalAlpha = dim ? 0.35 : 1;
	if (search.matches && !dim) {
		c.fillStyle = theme.mark;
		c.fillRect(x, y + ROW - 4, w, 2);
	}
	if (w > 26)
		label(c, lane, row, i, x, y, w);
}

function drawLane(c, lane, top) {
	const y = AXIS + lane.y - top;
	c.fillStyle = theme.line;
	c.fillRect(0, y, view.width, 1);
	const rows = lane.folded ? lane.rows.slice(0, 1) : lane.rows;
	c.font = "11px " + theme.mono;
	rows.forEach((row, k) => {
		const at = y + HEAD + k * ROW;
		if (at < view.height && at + ROW > AXIS)
			drawRow(c, lane, row, at);
	});
	c.font = "600 11px " + theme.sans;
	c.fillStyle = theme.soft;
	const more = lane.folded && lane.rows.length > 1 ? `  ▸ ${lane.rows.length} rows` : lane.rows.length > 1 ? "  ▾" : "";
	c.fillText(lane.title + more, 8, y + HEAD / 2 + 1);
}

function boxOf(pick) {
	const row = pick.lane.rows[pick.row], folded = pick.lane.folded && pick.row > 0;
	const y = AXIS + pick.lane.y - view.scroller.scrollTop + HEAD + (folded ? 0 : pick.row * ROW);
	return { x: xOf(row.start[pick.i]), right: xOf(row.end[pick.i]), y };
}

/* The item that was chosen, and lines to what it asked for or who asked for it. */
function drawChosen(c) {
	if (!view.chosen)
		return;
	const box = boxOf(view.chosen);
	c.strokeStyle = theme.ink;
	c.lineWidth = 2;
	c.strokeRect(box.x - 0.5, box.y - 0.5, Math.max(3, box.right - box.x), ROW - 1);
	c.strokeStyle = theme.accent;
	c.lineWidth = 1.2;
	for (const other of linked(view.chosen).slice(0, 200)) {
		const to = boxOf(other), x = Math.min(Math.max(to.x, -50), view.width + 50);
		c.beginPath();
		c.moveTo(box.x, box.y + ROW / 2);
		c.bezierCurveTo(box.x, (box.y + to.y) / 2, x, (box.y + to.y) / 2, x, to.y + ROW / 2);
		c.stroke();
		c.strokeRect(to.x - 0.5, to.y - 0.5, Math.max(3, to.right - to.x), ROW - 1);
	}
}

function drawSpan(c) {
	if (!view.span)
		return;
	const a = xOf(Math.min(...view.span)), b = xOf(Math.max(...view.span));
	c.globalAlpha = 0.12;
	c.fillStyle = theme.accent;
	c.fillRect(a, AXIS, b - a, view.height);
	c.globalAlpha = 1;
	c.fillRect(a, AXIS, 1, view.height);
	c.fillRect(b, AXIS, 1, view.height);
}

function drawTimeline() {
	const scroller = view.scroller;
	view.width = Math.max(50, scroller.clientWidth);
	view.height = Math.min(AXIS + view.tall, scroller.clientHeight || 300);
	const c = fitCanvas(view.canvas, view.width, view.height), top = scroller.scrollTop;
	c.clearRect(0, 0, view.width, view.height);
	c.textBaseline = "middle";
	drawAxis(c);
	c.save();
	c.beginPath();
	c.rect(0, AXIS, view.width, view.height);
	c.clip();
	for (const lane of view.lanes)
		if (lane.y - top < view.height && lane.y + laneHeight(lane) > top)
			drawLane(c, lane, top);
	drawSpan(c);
	drawChosen(c);
	c.restore();
	drawMap();
	const where = document.getElementById("where");
	where.textContent = `${time(view.to - view.from)} in view`;
}

/* How busy devices (or threads in calls) were, over all of the time. */
function coverage(width) {
	const cover = new Float64Array(width), scale = width / (view.hi - view.lo);
	const devices = view.lanes.filter((l) => l.kind === "stream");
	for (const lane of devices.length ? devices : view.lanes.filter((l) => l.kind === "calls"))
		for (const row of devices.length ? lane.rows : lane.rows.slice(0, 1))
			for (let i = 0; i < row.n; i++)
				spread(cover, (row.start[i] - view.lo) * scale, (row.end[i] - view.lo) * scale,
					row.end[i] > row.start[i] ? row.busy[i] / (row.end[i] - row.start[i]) : 1);
	return cover;
}

function spread(cover, from, to, density) {
	const end = Math.min(Math.max(to, from + 0.02), cover.length); /* what took no time is seen too */
	for (let x = Math.floor(from); x < end; x++)
		cover[x] += density * (Math.min(end, x + 1) - Math.max(from, x));
}

let mapCover = null;

function drawMap() {
	const width = Math.max(50, view.map.clientWidth), height = 46;
	const c = fitCanvas(view.map, width, height);
	if (!mapCover || mapCover.length !== width)
		mapCover = coverage(width);
	const most = mapCover.reduce((a, b) => Math.max(a, b), 1e-9);
	c.clearRect(0, 0, width, height);
	c.fillStyle = colourOf("kernel", 0.4);
	for (let x = 0; x < width; x++)
		if (mapCover[x]) {
			const h = Math.max(1, mapCover[x] / most * (height - 12));
			c.fillRect(x, height - 4 - h, 1, h);
		}
	const at = (t) => (t - view.lo) / (view.hi - view.lo) * width;
	const a = Math.max(0, at(view.from)), b = Math.min(width, Math.max(at(view.to), a + 2));
	c.globalAlpha = 0.72;
	c.fillStyle = theme.sunk;
	c.fillRect(0, 0, a, height);
	c.fillRect(b, 0, width - b, height);
	c.globalAlpha = 1;
	c.strokeStyle = theme.accent;
	c.lineWidth = 1.5;
	c.strokeRect(a + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5);
}

/* ---- what is where ---- */

function laneAt(y) {
	const at = y - AXIS + view.scroller.scrollTop;
	return y < AXIS ? undefined : view.lanes.find((l) => at >= l.y && at < l.y + laneHeight(l));
}

/* The item under a point, or the nearest within a few pixels. */
function pickAt(x, y) {
	const lane = laneAt(y);
	if (!lane)
		return null;
	const k = Math.floor((y - AXIS + view.scroller.scrollTop - lane.y - HEAD) / ROW);
	const row = k >= 0 && (!lane.folded || k === 0) ? lane.rows[k] : undefined;
	if (!row || !row.n)
		return null;
	const t = timeAt(x), slack = (view.to - view.from) / view.width * 3;
	const after = firstAfter(row, t);
	const far = (i) => i < 0 || i >= row.n ? Infinity : Math.max(0, row.start[i] - t, t - row.end[i]);
	const i = far(after - 1) < far(after) ? after - 1 : after;
	return far(i) <= slack ? { lane, row: k, i } : null;
}

function makeLinks() {
	view.links = new Map();
	for (const lane of view.lanes)
		lane.rows.forEach((row, k) => {
			for (let i = 0; i < row.n; i++)
				if (row.link[i]) {
					const list = view.links.get(row.link[i]) || [];
					list.push({ lane, row: k, i });
					view.links.set(row.link[i], list);
				}
		});
}

/* Of a call what it asked for, of work on a device the innermost call that asked for it. */
function linked(pick) {
	const link = pick.lane.rows[pick.row].link[pick.i];
	if (!link)
		return [];
	if (!view.links)
		makeLinks();
	const all = (view.links.get(link) || []).filter((p) => onDevice(p.lane) !== onDevice(pick.lane));
	return onDevice(pick.lane) ? all.sort((a, b) => b.row - a.row).slice(0, 1) : all;
}

/* The ranges around a call, outermost first. */
function rangesAround(pick) {
	const t = pick.lane.rows[pick.row].start[pick.i];
	const lane = view.lanes.find((l) => l.kind === "ranges" && l.pid === pick.lane.pid && l.tid === pick.lane.tid);
	const around = [];
	(lane ? lane.rows : []).forEach((row, k) => {
		const i = firstAfter(row, t);
		if (i < row.n && row.start[i] <= t && row.count[i] === 1)
			around.push({ lane, row: k, i });
	});
	return around;
}

function itemFacts(pick) {
	const row = pick.lane.rows[pick.row], i = pick.i, d = detailOf(row, i);
	if (row.count[i] > 1)
		return [["events", count(row.count[i])], ["from", time(row.start[i])],
			["over", time(row.end[i] - row.start[i])],
			["busy", `${time(row.busy[i])}, ${percent(row.busy[i], row.end[i] - row.start[i])}`],
			["", "merged: the name is that of the longest"]];
	return [["took", time(row.end[i] - row.start[i])], ["at", time(row.start[i])],
		["grid", triple(d.grid)], ["block", triple(d.block)],
		["registers", d.registers], ["shared", d.shared ? bytes(d.shared) : ""],
		["bytes", d.bytes === undefined ? "" : bytes(d.bytes)],
		["rate", d.bytes && onDevice(pick.lane) ? scaled(d.bytes * 1e9 / Math.max(1, row.end[i] - row.start[i]), 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]) : ""],
		["kernel", d.kernel === undefined ? "" : names[d.kernel]],
		["error", d.error === undefined ? "" : names[d.error]],
		["in", pick.lane.title]];
}

const nameOf = (pick) => names[pick.lane.rows[pick.row].name[pick.i]];

/* ---- choosing ---- */

function jump(pick) {
	return el("button", { class: "link code", type: "button", click: () => choose(pick, true) },
		shorten(nameOf(pick)));
}

function waited(pick, call) {
	const work = pick.lane.rows[pick.row].start[pick.i], row = call.lane.rows[call.row];
	return work > row.start[call.i] ? time(work - row.start[call.i]) : "";
}

function chosenRows(pick) {
	const others = linked(pick), rows = [];
	const call = onDevice(pick.lane) ? others[0] : pick;
	if (onDevice(pick.lane) && call)
		rows.push(["asked for by", jump(call)], ["began after the call by", waited(pick, call)]);
	if (!onDevice(pick.lane) && others.length)
		rows.push([others.length > 1 ? `asked for ${count(others.length)} pieces of work` : "asked for",
			el("span", {}, ...others.slice(0, 12).flatMap((o, i) => i ? [", ", jump(o)] : [jump(o)]))]);
	const around = call ? rangesAround(call).filter((p) => p.lane !== pick.lane || p.row < pick.row) : [];
	if (around.length)
		rows.push(["within", el("span", {}, ...around.flatMap((o, i) => i ? [" › ", jump(o)] : [jump(o)]))]);
	return rows;
}

function choose(pick, go) {
	view.chosen = pick;
	view.panel.hidden = !pick;
	if (!pick)
		return queueDraw();
	const row = pick.lane.rows[pick.row], text = detailOf(row, pick.i).text;
	view.panel.replaceChildren(el("div", { class: "name" }, nameOf(pick)), facts(itemFacts(pick)),
		...(text === undefined ? [] : [el("div", { class: "code" }, names[text])]),
		facts(chosenRows(pick)));
	if (go)
		bringIntoView(pick);
	queueDraw();
}

function bringIntoView(pick) {
	const row = pick.lane.rows[pick.row], length = row.end[pick.i] - row.start[pick.i];
	const middle = (row.start[pick.i] + row.end[pick.i]) / 2, span = view.to - view.from;
	if (pick.lane.folded && pick.row > 0) {
		pick.lane.folded = false;
		layOut();
	}
	if (row.start[pick.i] < view.from || row.end[pick.i] > view.to || length < span / 400) {
		const wide = Math.max(length * 8, Math.min(span, length * 400));
		look(middle - wide / 2, middle + wide / 2);
	}
	const y = pick.lane.y + HEAD + pick.row * ROW, s = view.scroller;
	if (y < s.scrollTop || y > s.scrollTop + s.clientHeight - AXIS - 2 * ROW)
		s.scrollTop = Math.max(0, y - s.clientHeight / 2);
}

/* The next item of the row, or of those that are searched for: +1 or -1. */
function chooseNext(step) {
	const at = view.chosen;
	if (!at)
		return chooseFirst();
	const i = at.i + step;
	if (i >= 0 && i < at.lane.rows[at.row].n)
		choose({ ...at, i }, true);
}

function chooseFirst() {
	const t = (view.from + view.to) / 2;
	for (const lane of view.lanes)
		for (let k = 0; k < lane.rows.length; k++)
			if (lane.rows[k].n)
				return choose({ lane, row: k, i: Math.min(firstAfter(lane.rows[k], t), lane.rows[k].n - 1) }, true);
}

/* The match after (or before) the chosen item's start, or the middle of the view. */
function chooseMatch(step) {
	if (!search.matches)
		return;
	const at = view.chosen;
	const t = at ? at.lane.rows[at.row].start[at.i] : step > 0 ? -1 : Infinity;
	let best = null, bestStart = step > 0 ? Infinity : -Infinity;
	for (const lane of view.lanes)
		lane.rows.forEach((row, k) => {
			const i = matchIn(row, t, step);
			if (i >= 0 && (row.start[i] - bestStart) * step < 0) {
				best = { lane, row: k, i };
				bestStart = row.start[i];
			}
		});
	if (best)
		choose(best, true);
}

function matchIn(row, t, step) {
	for (let i = step > 0 ? 0 : row.n - 1; i >= 0 && i < row.n; i += step)
		if ((row.start[i] - t) * step > 0 && !isDimmed(row, i))
			return i;
	return -1;
}

/* A length of time that somebody drew: what happened in it. */
function measure() {
	const [a, b] = [Math.min(...view.span), Math.max(...view.span)];
	const lines = view.lanes.filter((l) => l.kind === "stream" || l.kind === "calls").map((lane) => {
		let events = 0, busy = 0;
		for (const row of lane.kind === "calls" ? lane.rows.slice(0, 1) : lane.rows)
			for (let i = firstAfter(row, a); i < row.n && row.start[i] < b; i++) {
				const share = (Math.min(b, row.end[i]) - Math.max(a, row.start[i])) / Math.max(1, row.end[i] - row.start[i]);
				events += row.count[i];
				busy += row.busy[i] * share;
			}
		return events ? [lane.title, `${count(events)} ${lane.kind === "calls" ? "calls" : "pieces of work"}, ${percent(busy, b - a)} busy`] : null;
	});
	view.panel.hidden = false;
	view.panel.replaceChildren(el("div", { class: "name" }, time(b - a)), facts([["from", time(a)], ["to", time(b)]]), facts(lines));
}

/* ---- hands ---- */

const timelineKeys = {
	a: () => pan(-0.2), d: () => pan(0.2), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
	w: () => zoom(0.6), s: () => zoom(1 / 0.6), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
	ArrowUp: () => view.scroller.scrollBy(0, -3 * ROW), ArrowDown: () => view.scroller.scrollBy(0, 3 * ROW),
	0: () => look(view.lo, view.hi), Home: () => look(view.lo, view.hi),
	".": () => chooseNext(1), ",": () => chooseNext(-1), n: () => chooseMatch(1), N: () => chooseMatch(-1),
	f: () => view.chosen && zoomToChosen(), Enter: () => view.chosen ? followLink() : chooseFirst(),
	Escape: () => { view.span = null; choose(null); },
};

function zoomToChosen() {
	const row = view.chosen.lane.rows[view.chosen.row], i = view.chosen.i;
	const margin = Math.max(row.end[i] - row.start[i], 10);
	look(row.start[i] - margin, row.end[i] + margin);
}

/* From a piece of work to its call, from a call to its work. */
function followLink() {
	const other = linked(view.chosen)[0];
	if (other)
		choose(other, true);
}

function onKey(e) {
	const act = timelineKeys[e.key];
	if (!act || e.ctrlKey || e.metaKey || e.altKey)
		return;
	e.preventDefault();
	act();
}

/* Without the focus a wheel scrolls the page, as everywhere. */
function onWheel(e) {
	const wanted = e.ctrlKey || e.metaKey || document.activeElement === view.canvas;
	const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
	if (!wanted && !sideways && !e.shiftKey)
		return;
	e.preventDefault();
	if (sideways || e.shiftKey)
		return pan((e.deltaX || e.deltaY) / view.width);
	zoom(Math.exp(Math.max(-200, Math.min(200, e.deltaY)) * 0.0022), e.offsetX);
}

const drag = { pointers: new Map(), moved: false };

function onDown(e) {
	view.canvas.focus({ preventScroll: true });
	view.canvas.setPointerCapture(e.pointerId);
	drag.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
	drag.moved = false;
	view.span = e.shiftKey ? [timeAt(e.offsetX), timeAt(e.offsetX)] : null;
	hideTip();
}

function pinch(e) {
	const [other] = [...drag.pointers].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
	const before = Math.abs(drag.pointers.get(e.pointerId).x - other.x);
	const now = Math.abs(e.offsetX - other.x);
	if (before > 10 && now > 10)
		zoom(before / now, (e.offsetX + other.x) / 2);
}

function onMove(e) {
	const last = drag.pointers.get(e.pointerId);
	if (!last)
		return hover(e);
	drag.moved = drag.moved || Math.hypot(e.offsetX - last.x, e.offsetY - last.y) > 3;
	if (!drag.moved)
		return;
	if (drag.pointers.size > 1)
		pinch(e);
	else if (view.span)
		view.span[1] = timeAt(e.offsetX);
	else {
		pan((last.x - e.offsetX) / view.width);
		if (e.pointerType === "mouse")
			view.scroller.scrollTop += last.y - e.offsetY;
	}
	drag.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
	queueDraw();
}

function onUp(e) {
	if (!drag.pointers.delete(e.pointerId))
		return;
	if (view.span && drag.moved)
		return measure();
	view.span = null;
	if (!drag.moved)
		click(e);
}

function click(e) {
	const lane = laneAt(e.offsetY);
	const head = lane && e.offsetY - AXIS + view.scroller.scrollTop - lane.y < HEAD;
	if (head && lane.rows.length > 1) {
		lane.folded = !lane.folded;
		layOut();
	} else {
		choose(pickAt(e.offsetX, e.offsetY), false);
	}
}

function hover(e) {
	const pick = pickAt(e.offsetX, e.offsetY);
	view.canvas.style.cursor = pick ? "pointer" : "grab";
	if (!pick)
		return hideTip();
	const call = onDevice(pick.lane) ? linked(pick)[0] : null;
	const around = call ? rangesAround(call) : [];
	const rows = itemFacts(pick);
	if (around.length)
		rows.push(["operator", nameOf(around[around.length - 1])]);
	showTip(e.clientX, e.clientY, nameOf(pick), rows);
}

/* In the map: a click moves the view there, a drag keeps moving it. */
function onMapMove(e) {
	if (e.type === "pointerdown")
		view.map.setPointerCapture(e.pointerId);
	if (!(e.buttons & 1))
		return;
	const t = view.lo + e.offsetX / view.map.clientWidth * (view.hi - view.lo);
	const half = Math.min((view.to - view.from) / 2, (view.hi - view.lo) * 0.45);
	look(t - half, t + half);
}

/* ---- the section ---- */

function timelineLegend() {
	const kinds = new Set(view.lanes.flatMap((l) => l.kind === "stream" ? ["kernel", "copy", "set"]
		: l.kind === "calls" ? ["call"] : l.kind === "ranges" ? ["range"] : l.kind === "python" ? ["python"]
			: l.kind === "spans" ? ["span"] : []));
	return el("div", { class: "legend" }, ...[...kinds].map((k) => {
		const swatch = el("i");
		swatch.style.background = colourOf(k, 0.4);
		return el("span", {}, swatch, hueText[k]);
	}), el("span", { id: "where", class: "push" }));
}

function timelineNote() {
	const t = data.timeline;
	if (!t.bin_ns)
		return `every one of ${count(t.events)} events`;
	return `${count(t.events)} events in ${count(t.items)} pieces; neighbours shorter than ${time(t.bin_ns)} are merged`;
}

function listenTimeline() {
	const canvas = view.canvas;
	canvas.addEventListener("keydown", onKey);
	canvas.addEventListener("wheel", onWheel, { passive: false });
	canvas.addEventListener("pointerdown", onDown);
	canvas.addEventListener("pointermove", onMove);
	canvas.addEventListener("pointerup", onUp);
	canvas.addEventListener("pointercancel", onUp);
	canvas.addEventListener("pointerleave", hideTip);
	canvas.addEventListener("dblclick", () => view.chosen && zoomToChosen());
	view.map.addEventListener("pointerdown", onMapMove);
	view.map.addEventListener("pointermove", onMapMove);
	view.scroller.addEventListener("scroll", queueDraw);
	search.listeners.push(queueDraw);
	new ResizeObserver(queueDraw).observe(view.scroller);
}

function button(text, title, act) {
	return el("button", { class: "small", type: "button", title, "aria-label": title, click: act }, text);
}

function timelineSection() {
	view.lanes = makeLanes().filter((l) => l.rows.some((r) => r.n));
	if (!view.lanes.length)
		return section("timeline", "Timeline", null, empty("The trace holds no call, no range and no work of a device: nothing happened while it was recorded, or the level kept it out (see ", el("code", {}, "weir record --level"), ")."));
	extent();
	view.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline. Arrow keys or A and D move, W and S zoom, comma and full stop go from one event to the next, Enter follows a launch, F zooms to it, Escape leaves." });
	view.map = el("canvas", { class: "map", "aria-hidden": "true" });
	view.spacer = el("div");
	view.spacer.append(view.canvas);
	view.scroller = el("div", { class: "scroll" }, view.spacer);
	view.panel = el("div", { class: "chosen", "aria-live": "polite", hidden: true });
	const s = section("timeline", "Timeline", timelineNote(),
		el("div", { class: "panel timeline" }, view.map, view.scroller, timelineLegend(), view.panel));
	s.firstChild.append(el("div", { class: "push" }, el("span", { class: "note desk" }, "click it, then scroll to zoom; shift-drag measures"),
		button("−", "zoom out", () => zoom(1 / 0.6)), button("+", "zoom in", () => zoom(0.6)),
		button("whole", "show all of the time", () => look(view.lo, view.hi))));
	listenTimeline();
	return s;
}
