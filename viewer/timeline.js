/*
 * The timeline: lanes of streams, ranges and calls on one axis of time, drawn on a canvas.
 *
 * Items narrower than a pixel are added up, pixel by pixel: the darker, the busier.
 */
"use strict";

const ROW = 17,
	HEAD = 21,
	AXIS = 24,
	LANES_OPEN = 40,
	GROUP = 24; /* the head of a group */

const view = {
	lanes: [],
	groups: [],
	lo: 0,
	hi: 1,
	from: 0,
	to: 1,
	width: 0,
	height: 0,
	tall: 0,
	canvas: null,
	map: null,
	scroller: null,
	spacer: null,
	chosen: null,
	panel: null,
	span: null,
	links: null,
	queued: false,
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
	if (view.hi <= view.lo) view.hi = view.lo + 1;
	view.from = view.lo;
	view.to = view.hi;
}

const laneHeight = (lane) => HEAD + (lane.folded ? 1 : Math.max(1, lane.rows.length)) * ROW + 5;

/* A folded group has one row left, in which all of its lanes are drawn. */
function layOut() {
	let y = 0;
	for (const group of view.groups) {
		group.y = y;
		y += GROUP;
		for (const lane of group.lanes) {
			lane.y = y;
			if (!group.folded) y += laneHeight(lane);
		}
		if (group.folded) y += ROW + 3;
	}
	view.tall = y;
	view.spacer.style.height = AXIS + y + "px";
	queueDraw();
}

const xOf = (t) => ((t - view.from) / (view.to - view.from)) * view.width;
const timeAt = (x) => view.from + (x / view.width) * (view.to - view.from);

/* Moves the view; it stays near what there is. */
function look(from, to) {
	const whole = view.hi - view.lo,
		margin = whole * 0.04;
	const span = Math.min(Math.max(to - from, 20, view.hi * 1e-13), whole + 2 * margin);
	const middle = (from + to) / 2;
	view.from = Math.min(
		Math.max(middle - span / 2, view.lo - margin),
		view.hi + margin - span,
	);
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
	if (view.queued) return;
	view.queued = true;
	requestAnimationFrame(() => {
		view.queued = false;
		drawTimeline();
	});
}

function drawAxis(c) {
	const step = niceStep(view.to - view.from, view.width / 120);
	c.fillStyle = theme.panel;
	c.fillRect(0, 0, view.width, AXIS);
	c.font = "11px " + theme.sans;
	c.textBaseline = "middle";
	const first = Math.ceil(view.from / step) * step;
	/* Counted, since far from zero adding a step may change nothing. */
	for (let k = 0; k <= (view.to - first) / step && k < 1000; k++) {
		const t = first + k * step;
		const x = Math.round(xOf(t)) + 0.5;
		c.fillStyle = theme.line;
		c.fillRect(x - 0.5, AXIS - 5, 1, view.height);
		c.fillStyle = theme.soft;
		if (x + 4 + c.measureText(axisTime(t, step)).width < view.width) c.fillText(axisTime(t, step), x + 4, AXIS / 2);
	}
	c.fillStyle = theme.line;
	c.fillRect(0, AXIS - 1, view.width, 1);
}

function isDimmed(row, i) {
	if (!search.matches || search.matches[row.name[i]]) return false;
	const kernel = detailOf(row, i).kernel;
	return kernel === undefined || !search.matches[kernel];
}

function label(c, lane, row, i, x, y, w) {
	const detail = detailOf(row, i);
	let text = shortName(row.name[i]);
	if (row.count[i] > 1) text = count(row.count[i]) + " × " + text;
	else if (detail.kernel !== undefined && w > 170) text += "  " + shortName(detail.kernel);
	putLabel(c, text, x, y + ROW / 2 - 0.5, w);
}

/* One row; what is narrower than a pixel is collected in `thin`. */
function drawRow(c, lane, row, y) {
	const thin = { x: -1, cover: 0, first: 0, lit: false };
	const scale = view.width / (view.to - view.from);
	const flush = () => {
		if (thin.x < 0 || !thin.cover) return;
		c.globalAlpha =
			(search.matches && !thin.lit ? 0.2 : 1) *
			Math.min(1, theme.faintest + (1 - theme.faintest) * thin.cover);
		c.fillStyle =
			search.matches && thin.lit
				? theme.mark
				: colour(kindOf(lane, row, thin.first), row.name[thin.first]);
		c.fillRect(thin.x, y, 1, ROW - 2);
	};
	for (let i = firstAfter(row, view.from); i < row.n && row.start[i] < view.to; i++) {
		const x = (row.start[i] - view.from) * scale,
			w = (row.end[i] - row.start[i]) * scale;
		if (w < 1.6) {
			const at = Math.max(0, Math.floor(x));
			if (at !== thin.x) {
				flush();
				thin.x = at;
				thin.cover = 0;
				thin.first = i;
				thin.lit = false;
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
	const w = Math.max(1, right - x - (right - x > 3 ? 1 : 0)),
		dim = isDimmed(row, i);
	const several = row.count[i] > 1;
	const density = several
		? Math.min(1, row.busy[i] / (row.end[i] - row.start[i]))
		: 1;
	c.globalAlpha = (dim ? 0.22 : 1) * (theme.faintest + (1 - theme.faintest) * density);
	c.fillStyle = colour(kindOf(lane, row, i), row.name[i]);
	c.fillRect(x, y, w, ROW - 2);
	c.globalAlpha = dim ? 0.35 : 1;
	if (search.matches && !dim) {
		c.fillStyle = theme.mark;
		c.fillRect(x, y + ROW - 4, w, 2);
	}
	if (w > 26) label(c, lane, row, i, x, y, w);
}

function drawLane(c, lane, top) {
	const y = AXIS + lane.y - top;
	c.fillStyle = theme.line;
	c.fillRect(0, y, view.width, 1);
	const rows = lane.folded ? lane.rows.slice(0, 1) : lane.rows;
	c.font = "11px " + theme.mono;
	rows.forEach((row, k) => {
		const at = y + HEAD + k * ROW;
		if (at < view.height && at + ROW > AXIS) drawRow(c, lane, row, at);
	});
	c.font = "11px " + theme.sans;
	c.fillStyle = theme.soft;
	const more =
		lane.folded && lane.rows.length > 1
			? `  ▸ ${lane.rows.length} rows`
			: lane.rows.length > 1
				? "  ▾"
				: "";
	c.fillText(lane.label + more, 22, y + HEAD / 2 + 1);
}

/* A folded group shows these: the first row of each of its threads, all of its streams. */
function drawFolded(c, group, y) {
	const lanes = group.lanes.filter((l) => l.kind === (group.device ? "stream" : "calls"));
	for (const lane of lanes.length ? lanes : group.lanes)
		for (const row of group.device ? lane.rows : lane.rows.slice(0, 1)) drawRow(c, lane, row, y);
}

function drawGroup(c, group, top) {
	const y = AXIS + group.y - top;
	c.fillStyle = theme.sunk;
	c.fillRect(0, y, view.width, GROUP);
	c.fillStyle = theme.line;
	c.fillRect(0, y, view.width, 1);
	c.font = "600 12px " + theme.sans;
	c.fillStyle = theme.ink;
	const n = group.lanes.length;
	c.fillText(
		`${group.folded ? "▸" : "▾"}  ${group.title}${group.folded && n > 1 ? `  (${n} lanes)` : ""}`,
		8,
		y + GROUP / 2 + 1,
	);
	if (group.folded) drawFolded(c, group, y + GROUP);
}

function boxOf(pick) {
	const row = pick.lane.rows[pick.row],
		folded = pick.lane.folded && pick.row > 0;
	const y =
		AXIS +
		pick.lane.y -
		view.scroller.scrollTop +
		(pick.lane.group.folded ? 0 : HEAD + (folded ? 0 : pick.row * ROW));
	return { x: xOf(row.start[pick.i]), right: xOf(row.end[pick.i]), y };
}

/* The item that was chosen, and lines to what it launched or to its call. */
function drawChosen(c) {
	if (!view.chosen) return;
	const box = boxOf(view.chosen);
	c.strokeStyle = theme.ink;
	c.lineWidth = 2;
	c.strokeRect(box.x - 0.5, box.y - 0.5, Math.max(3, box.right - box.x), ROW - 1);
	c.strokeStyle = theme.accent;
	c.lineWidth = 1.2;
	for (const other of linked(view.chosen).slice(0, 200)) {
		const to = boxOf(other),
			x = Math.min(Math.max(to.x, -50), view.width + 50);
		c.beginPath();
		c.moveTo(box.x, box.y + ROW / 2);
		c.bezierCurveTo(
			box.x,
			(box.y + to.y) / 2,
			x,
			(box.y + to.y) / 2,
			x,
			to.y + ROW / 2,
		);
		c.stroke();
		c.strokeRect(to.x - 0.5, to.y - 0.5, Math.max(3, to.right - to.x), ROW - 1);
	}
}

function drawSpan(c) {
	if (!view.span) return;
	const a = xOf(Math.min(...view.span)),
		b = xOf(Math.max(...view.span));
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
	const c = fitCanvas(view.canvas, view.width, view.height),
		top = scroller.scrollTop;
	c.clearRect(0, 0, view.width, view.height);
	c.textBaseline = "middle";
	drawAxis(c);
	c.save();
	c.beginPath();
	c.rect(0, AXIS, view.width, view.height);
	c.clip();
	for (const group of view.groups) if (group.y - top < view.height) drawGroup(c, group, top);
	for (const lane of lanesInView()) drawLane(c, lane, top);
	drawSpan(c);
	drawChosen(c);
	c.restore();
	drawMap();
	queueCloseLook();
	const where = document.getElementById("where");
	where.textContent = `${time(view.to - view.from)} in view`;
}

/* How busy a recording's devices (or threads in calls) were, over all of the time. */
function coverage(side, width) {
	const cover = new Float64Array(width),
		scale = width / (view.hi - view.lo),
		of = (kind) => view.lanes.filter((l) => l.side === side && l.kind === kind);
	const devices = of("stream");
	for (const lane of devices.length ? devices : of("calls"))
		for (const row of devices.length ? lane.rows : lane.rows.slice(0, 1))
			for (let i = 0; i < row.n; i++)
				spread(
					cover,
					(row.start[i] - view.lo) * scale,
					(row.end[i] - view.lo) * scale,
					row.end[i] > row.start[i]
						? row.busy[i] / (row.end[i] - row.start[i])
						: 1,
				);
	return cover;
}

function spread(cover, from, to, density) {
	const end = Math.min(
		Math.max(to, from + 0.02),
		cover.length,
	); /* what took no time is seen too */
	for (let x = Math.floor(from); x < end; x++)
		cover[x] += density * (Math.min(end, x + 1) - Math.max(from, x));
}

let mapCover = null; /* of each recording */

function drawCover(c, cover, bottom, tall) {
	const most = cover.reduce((a, b) => Math.max(a, b), 1e-9);
	for (let x = 0; x < cover.length; x++)
		if (cover[x]) {
			const h = Math.max(1, (cover[x] / most) * tall);
			c.fillRect(x, bottom - h, 1, h);
		}
}

function drawMap() {
	const width = Math.max(50, view.map.clientWidth),
		height = 46;
	const c = fitCanvas(view.map, width, height);
	if (!mapCover || mapCover[0].length !== width) mapCover = sides.map((s) => coverage(s, width));
	c.clearRect(0, 0, width, height);
	c.fillStyle = colourOf("kernel", MIDDLE);
	const band = (height - 8) / sides.length; /* of two recordings the first's is above */
	mapCover.forEach((cover, k) => drawCover(c, cover, 4 + (k + 1) * band, band - 4));
	const at = (t) => ((t - view.lo) / (view.hi - view.lo)) * width;
	const a = Math.max(0, at(view.from)),
		b = Math.min(width, Math.max(at(view.to), a + 2));
	c.globalAlpha = 0.72;
	c.fillStyle = theme.sunk;
	c.fillRect(0, 0, a, height);
	c.fillRect(b, 0, width - b, height);
	c.globalAlpha = 1;
	c.strokeStyle = theme.accent;
	c.lineWidth = 1.5;
	c.strokeRect(a + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5);
}

function laneAt(y) {
	const at = y - AXIS + view.scroller.scrollTop;
	return y < AXIS
		? undefined
		: view.lanes.find((l) => !l.group.folded && at >= l.y && at < l.y + laneHeight(l));
}

/* By its head, or, when it is folded, by its row. */
function groupAt(y) {
	const at = y - AXIS + view.scroller.scrollTop;
	return y < AXIS
		? undefined
		: view.groups.find(
				(g) => at >= g.y && at < g.y + GROUP + (g.folded ? ROW + 3 : 0),
			);
}

/* The item under a point, or the nearest within a few pixels. */
function pickAt(x, y) {
	const lane = laneAt(y);
	if (!lane) return null;
	const k = Math.floor((y - AXIS + view.scroller.scrollTop - lane.y - HEAD) / ROW);
	const row = k >= 0 && (!lane.folded || k === 0) ? lane.rows[k] : undefined;
	if (!row || !row.n) return null;
	const t = timeAt(x),
		slack = ((view.to - view.from) / view.width) * 3;
	const after = firstAfter(row, t);
	const far = (i) =>
		i < 0 || i >= row.n ? Infinity : Math.max(0, row.start[i] - t, t - row.end[i]);
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

/* For a call its launches, for an activity the innermost call that launched it. */
function linked(pick) {
	const link = pick.lane.rows[pick.row].link[pick.i];
	if (!link) return [];
	if (!view.links) makeLinks();
	const all = (view.links.get(link) || []).filter(
		(p) => onDevice(p.lane) !== onDevice(pick.lane),
	);
	return onDevice(pick.lane) ? all.sort((a, b) => b.row - a.row).slice(0, 1) : all;
}

/* The ranges around a call, outermost first. */
function rangesAround(pick) {
	const t = pick.lane.rows[pick.row].start[pick.i];
	const lane = view.lanes.find(
		(l) =>
			l.kind === "ranges" &&
			l.side === pick.lane.side &&
			l.pid === pick.lane.pid &&
			l.tid === pick.lane.tid,
	);
	const around = [];
	(lane ? lane.rows : []).forEach((row, k) => {
		const i = firstAfter(row, t);
		if (i < row.n && row.start[i] <= t && row.count[i] === 1)
			around.push({ lane, row: k, i });
	});
	return around;
}

function itemFacts(pick) {
	const row = pick.lane.rows[pick.row],
		i = pick.i,
		d = detailOf(row, i);
	return [
		["took", time(row.end[i] - row.start[i])],
		["at", moment(row.start[i] - pick.lane.side.shift)],
		["grid", triple(d.grid)],
		["block", triple(d.block)],
		["registers", d.registers],
		["shared", d.shared ? bytes(d.shared) : ""],
		["bytes", d.bytes === undefined ? "" : bytes(d.bytes)],
		[
			"rate",
			d.bytes && onDevice(pick.lane)
				? scaled(
						(d.bytes * 1e9) /
							Math.max(1, row.end[i] - row.start[i]),
						1000,
						["B/s", "kB/s", "MB/s", "GB/s", "TB/s"],
					)
				: "",
		],
		["kernel", d.kernel === undefined ? "" : names[d.kernel]],
		["error", d.error === undefined ? "" : names[d.error]],
		["in", pick.lane.title],
	];
}

/* A range's arguments: an object of JSON, as whoever recorded it wrote it. */
function argumentFacts(pick, wanted) {
	const row = pick.lane.rows[pick.row],
		text = names[detailOf(row, pick.i).text];
	if (pick.lane.kind === "calls" || !text) return [];
	try {
		return Object.entries(JSON.parse(text))
			.filter(([key, value]) => value !== "" && (!wanted || key === wanted))
			.map(([key, value]) => [
				key.toLowerCase(),
				(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 600),
			]);
	} catch {
		return wanted ? [] : [["arguments", text]];
	}
}

const nameOf = (pick) => names[pick.lane.rows[pick.row].name[pick.i]];
