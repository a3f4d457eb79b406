/*
 * Memory over the time: what was live, in layers by what it belongs to, below what was reserved; what of
 * that was not live; and how long the calls took that allocate and free.
 */
"use strict";

const CHART = { height: 270, left: 66, right: 14, top: 22, bottom: 26 };
const SHARE = { height: 92, left: 66, right: 14, top: 10, bottom: 8 };

const stackText = {
	operator: "by operator",
	call: "by call",
	size: "by size",
	kind: "by kind of memory",
};
const memory = { by: null, panels: [] };

function layerName(by, l) {
	if (l.rest !== undefined) return `${count(l.rest)} others`;
	if (by === "size") return l.from_bytes ? `${bytes(l.from_bytes)} and more` : "less than 2 B";
	if (by === "operator") return l.name === null ? "(outside of all ranges)" : readable(l.name);
	return l.name;
}

/* Bytes of each point. */
function liveOf(l) {
	if (!l.at) {
		const v = new Varints(bytesOf(l.live));
		let sum = 0;
		l.at = [];
		while (v.more) l.at.push((sum += v.difference()));
	}
	return l.at;
}

/* The same name has the same colour in both recordings. */
function layerColour(by, l) {
	if (l.rest !== undefined) return colourOf("other", MIDDLE);
	const all = new Set(sides.flatMap((s) => s.stacks[by].map((x) => layerName(by, x))));
	return fillOf(...layerFills[[...all].indexOf(layerName(by, l)) % layerFills.length]);
}

const stackKinds = () =>
	Object.keys(stackText).filter((by) => sides.some((s) => s.stacks[by].length));

/* One layer alone says nothing: the first that has several. */
function firstStack() {
	const kinds = stackKinds();
	return kinds.find((by) => sides.some((s) => s.stacks[by].length > 1)) || kinds[0] || null;
}

/* Points of an outline that keeps its value until the next point. */
function steps(points, x, y) {
	let d = "";
	points.forEach((p, i) => {
		d += i
			? `H${x(p).toFixed(1)}V${y(p).toFixed(1)}`
			: `M${x(p).toFixed(1)},${y(p).toFixed(1)}`;
	});
	return d;
}

/* Marks of 1, 2, 4 … × 2^10n: what people expect of bytes. */
function byteSteps(most) {
	const step = Math.pow(2, Math.ceil(Math.log2(Math.max(4, most) / 4)));
	return [0, 1, 2, 3, 4].map((k) => k * step).filter((v) => v <= most * 1.02);
}


/* Both recordings have one scale. */
function memoryScale() {
	let most = 1,
		first = Infinity,
		last = 1;
	for (const { memory: m } of sides) {
		for (const p of m.series)
			most = Math.max(most, p.max_bytes, p.host_max_bytes, p.reserved_bytes || 0);
		most = Math.max(most, m.peak_bytes);
		if (!m.series.length) continue;
		first = Math.min(first, m.series[0].at_ns);
		last = Math.max(last, m.series[m.series.length - 1].at_ns);
	}
	return { most, first: Math.min(first, last - 1), last };
}

function axesOf(box, scale, width) {
	return {
		x: (p) =>
			box.left +
			((p.at_ns - scale.first) / (scale.last - scale.first)) * (width - box.left - box.right),
		y: (v) => box.height - box.bottom - (v / scale.most) * (box.height - box.top - box.bottom),
	};
}

function gridLine(a, box, width, v, text) {
	return [
		svg("line", { class: "grid", x1: box.left, x2: width - box.right, y1: a.y(v), y2: a.y(v) }),
		svg("text", { x: box.left - 8, y: a.y(v) + 4, "text-anchor": "end" }, text),
	];
}

function timeMarks(a, box, scale, width) {
	const step = niceStep(scale.last - scale.first, width / 130),
		marks = [],
		from = Math.ceil(scale.first / step);
	for (let k = from; k <= scale.last / step && k < from + 1000; k++) {
		const t = k * step;
		marks.push(
			svg(
				"text",
				{ x: a.x({ at_ns: t }), y: box.height - 8, "text-anchor": "middle" },
				axisTime(t, step),
			),
		);
	}
	return marks;
}

/* The area between two outlines, given as values of each point. */
function areaBetween(series, a, low, high) {
	const x = (p) => a.x(p).toFixed(1);
	let up = `M${x(series[0])},${a.y(low[0]).toFixed(1)}`,
		down = "";
	series.forEach((p, i) => {
		up += `${i ? `H${x(p)}` : ""}V${a.y(high[i]).toFixed(1)}`;
		down = `V${a.y(low[i]).toFixed(1)}${i ? `H${x(p)}` : ""}` + down;
	});
	return up + down + "Z";
}

function putLayers(picture, side, a) {
	const series = side.memory.series,
		layers = side.stacks[memory.by] || [];
	let low = series.map(() => 0);
	layers.forEach((l) => {
		const high = liveOf(l).map((v, k) => v + low[k]);
		const area = svg("path", { class: "layer", d: areaBetween(series, a, low, high) });
		area.style.fill = layerColour(memory.by, l);
		picture.append(area);
		low = high;
	});
}

/* The memory that was reserved beyond the live one. */
function putReserved(picture, series, a) {
	if (!series.some((p) => p.reserved_bytes)) return;
	const live = series.map((p) => p.max_bytes);
	const reserved = series.map((p, i) => Math.max(p.reserved_bytes || 0, live[i]));
	picture.append(
		svg("path", { class: "unused", d: areaBetween(series, a, live, reserved) }),
		svg("path", { class: "reserved", d: steps(series, a.x, (p) => a.y(Math.max(p.reserved_bytes || 0, p.max_bytes))) }),
	);
}

function putPeak(picture, m, a, width) {
	const x = a.x({ at_ns: m.peak_at_ns }),
		y = a.y(m.peak_bytes),
		left = x > width * 0.6;
	picture.append(
		svg("line", { class: "peak", x1: x, x2: x, y1: y, y2: CHART.height - CHART.bottom }),
		svg("circle", { class: "dot", cx: x, cy: y, r: 4 }),
		svg(
			"text",
			{ class: "strong halo", x: x + (left ? -9 : 9), y: y - 8, "text-anchor": left ? "end" : "start" },
			`peak ${bytes(m.peak_bytes)} at ${time(m.peak_at_ns)}`,
		),
	);
}

function memoryChart(side, scale, width) {
	const m = side.memory,
		a = axesOf(CHART, scale, width);
	const picture = svg("svg", {
		class: "chart",
		viewBox: `0 0 ${width} ${CHART.height}`,
		height: CHART.height,
		role: "img",
		"aria-label": `Live memory over time: at most ${bytes(m.peak_bytes)}, at the end ${bytes(m.live_at_exit_bytes)}.`,
	});
	for (const v of byteSteps(scale.most)) picture.append(...gridLine(a, CHART, width, v, bytes(v)));
	picture.append(...timeMarks(a, CHART, scale, width));
	putReserved(picture, m.series, a);
	putLayers(picture, side, a);
	picture.append(svg("path", { class: "edge", d: steps(m.series, a.x, (p) => a.y(p.max_bytes)) }));
	if (m.series.some((p) => p.host_max_bytes))
		picture.append(svg("path", { class: "host", d: steps(m.series, a.x, (p) => a.y(p.host_max_bytes)) }));
	if (m.peak_at_ns !== null) putPeak(picture, m, a, width);
	followChart(picture, side, a, CHART, width);
	return picture;
}

const unusedShare = (p) => (p.reserved_bytes ? p.unused_bytes / p.reserved_bytes : 0);

function shareChart(side, scale, width) {
	const series = side.memory.series,
		a = axesOf(SHARE, { ...scale, most: 1 }, width),
		worst = side.memory.reserved && side.memory.reserved.worst;
	const picture = svg("svg", {
		class: "chart share",
		viewBox: `0 0 ${width} ${SHARE.height}`,
		height: SHARE.height,
		role: "img",
		"aria-label": "The share of reserved memory that was not live, over time.",
	});
	for (const v of [0, 0.5, 1]) picture.append(...gridLine(a, SHARE, width, v, `${v * 100} %`));
	picture.append(
		svg("path", { class: "unused", d: areaBetween(series, a, series.map(() => 0), series.map(unusedShare)) }),
		svg("path", { class: "reserved", d: steps(series, a.x, (p) => a.y(unusedShare(p))) }),
	);
	if (worst) {
		const x = a.x(worst),
			left = x > width * 0.6;
		picture.append(
			svg("circle", { class: "dot", cx: x, cy: a.y(worst.unused_share), r: 4 }),
			svg(
				"text",
				{ class: "strong halo", x: x + (left ? -9 : 9), y: SHARE.top + 10, "text-anchor": left ? "end" : "start" },
				`most unused: ${bytes(worst.unused_bytes)}, ${percent(worst.unused_share, 1)}, at ${time(worst.at_ns)}`,
			),
		);
	}
	followChart(picture, side, a, SHARE, width);
	return picture;
}

function pointFacts(side, i) {
	const p = side.memory.series[i];
	const layers = (side.stacks[memory.by] || [])
		.map((l) => [layerName(memory.by, l), liveOf(l)[i]])
		.filter(([, v]) => v > 0)
		.sort((x, y) => y[1] - x[1])
		.slice(0, 6)
		.map(([name, v]) => [shorten(name).slice(0, 60), bytes(v)]);
	return [
		["live at most", bytes(p.max_bytes)],
		["reserved", p.reserved_bytes ? bytes(p.reserved_bytes) : ""],
		["not live", p.reserved_bytes ? percent(unusedShare(p), 1) : ""],
		["pinned", p.host_bytes ? bytes(p.host_bytes) : ""],
		...layers,
	];
}

function followChart(picture, side, a, box, width) {
	const series = side.memory.series;
	const line = svg("line", { class: "peak", y1: box.top, y2: box.height - box.bottom, visibility: "hidden" });
	picture.append(line);
	picture.addEventListener("pointermove", (e) => {
		const at = (e.offsetX / picture.clientWidth) * width;
		const i = series.reduce(
			(best, p, k) => (Math.abs(a.x(p) - at) < Math.abs(a.x(series[best]) - at) ? k : best),
			0,
		);
		line.setAttribute("x1", a.x(series[i]));
		line.setAttribute("x2", a.x(series[i]));
		line.setAttribute("visibility", "visible");
		showTip(e.clientX, e.clientY, time(series[i].at_ns), pointFacts(side, i));
	});
	picture.addEventListener("pointerleave", () => {
		hideTip();
		line.setAttribute("visibility", "hidden");
	});
}

/* Rows with a bar each: [label, count, amount, text of amount]. */
function ranking(title, rows) {
	if (!rows.length) return null;
	const most = Math.max(...rows.map((r) => r[2]), 1);
	return el(
		"div",
		{},
		el("h3", {}, title),
		el(
			"div",
			{ class: "rank" },
			...rows.slice(0, 8).map(([label, number, amount, text]) => {
				const fill = el("div", { class: "fill" });
				fill.style.width = (100 * amount) / most + "%";
				return el(
					"div",
					{},
					fill,
					el("span", { class: "label", title: label }, label),
					el("span", { class: "count" }, count(number)),
					el("span", { class: "amount" }, text),
				);
			}),
		),
	);
}

function memoryFacts(m, said) {
	const r = m.reserved;
	return facts([
		["allocations", count(m.alloc_count)],
		["frees", count(m.free_count)],
		["allocated in all", bytes(m.allocated_bytes)],
		["live at the end", bytes(m.live_at_exit_bytes)],
		/* Less than was live: part of what was reserved is not known. */
		["reserved at most", r && r.peak_bytes >= m.peak_bytes ? bytes(r.peak_bytes) : ""],
		["fragmentation at the peak", m.fragmentation === null ? "" : percent(m.fragmentation, 1)],
		["growth", said],
	]);
}

function layerLegend(side) {
	return el(
		"div",
		{ class: "legend layers" },
		...(side.stacks[memory.by] || []).map((l) => {
			const name = layerName(memory.by, l);
			return el("span", { title: name }, paint(el("i"), () => layerColour(memory.by, l)), shorten(name));
		}),
		side.memory.series.some((p) => p.reserved_bytes)
			? el("span", {}, el("i", { class: "unused" }), reservedText(side.memory.reserved))
			: null,
		side.memory.series.some((p) => p.host_max_bytes) ? el("span", {}, el("i", { class: "host" }), "host memory") : null,
	);
}

const reservedText = (r) =>
	`reserved and not live${r && r.source === "pages" ? " (pages of 2 MiB with a block in them)" : r && r.source ? ` (as known from ${r.source === "allocator" ? "the allocator" : r.source})` : ""}`;

/* How often a call took how long, from left to right twice as long each time. */
function miniHistogram(bars) {
	const most = Math.max(...bars.map((b) => b.count), 1);
	const box = el("span", { class: "mini", title: bars.map((b) => `${time(b.from_ns)} and more: ${count(b.count)}`).join(String.fromCharCode(10)) });
	for (const b of bars) {
		const bar = el("i");
		bar.style.height = `${Math.max(b.count ? 8 : 0, (100 * b.count) / most)}%`;
		box.append(bar);
	}
	return box;
}

function callTimeTable(m) {
	const rows = m.call_time ? m.call_time.calls : [];
	if (!rows.length) return null;
	const columns = [
		nameColumn("The function."),
		barColumn("total_ns", "time", "The total of all calls."),
		numberColumn("share_of_run", "of the run", "The share of the run in which some thread was in it.", (v) => percent(v, 1)),
		numberColumn("count", "calls", "How often it was called."),
		numberColumn("p50_ns", "median", "Half of the calls took less, half more.", time),
		numberColumn("p90_ns", "p90", "90 of 100 calls took less.", time),
		numberColumn("p99_ns", "p99", "99 of 100 calls took less.", time),
		numberColumn("max_ns", "longest", "The longest call.", time),
		column((r) => r.histogram.length, "spread", "The calls by duration, which doubles from bar to bar.", (v, r) =>
			miniHistogram(r.histogram),
		),
		column((r) => (r.waits ? "waits" : ""), "waits", "Whether the call waits for the device."),
	];
	return el("div", { class: "inside" }, el("h3", {}, "Calls that allocate and free"), new Table(columns, rows, "total_ns").element);
}

function peakRankings(m) {
	const byPeak = (rows, label) =>
		rows
			.filter((r) => r.at_peak_bytes)
			.sort((a, b) => b.at_peak_bytes - a.at_peak_bytes)
			.map((r) => [label(r), r.at_peak_count, r.at_peak_bytes, bytes(r.at_peak_bytes)]);
	return el(
		"div",
		{ class: "cols" },
		ranking(
			"Live at the peak, by operator",
			byPeak(m.by_operator, (r) => r.name || "(outside of all ranges)"),
		),
		ranking(
			"Live at the peak, by call",
			byPeak(m.by_call, (r) => r.name),
		),
		ranking(
			"Live at the peak, by size",
			byPeak(m.by_size, (r) => `${bytes(r.from_bytes)} and more`),
		),
	);
}

function memoryPanel(side, scale) {
	const holder = el("div"),
		legend = el("div");
	const fragments = side.memory.series.some((p) => p.unused_bytes);
	const draw = (width) => {
		holder.replaceChildren(
			memoryChart(side, scale, width),
			...(fragments
				? [el("h3", {}, "The share of reserved memory that was not live"), shareChart(side, scale, width)]
				: []),
		);
		legend.replaceChildren(layerLegend(side));
	};
	memory.panels.push(() => holder.clientWidth > 50 && draw(Math.round(holder.clientWidth)));
	watchWidth(holder, draw);
	return el(
		"div",
		{ class: "panel" },
		el("div", { class: "chartbox" }, two ? el("h3", {}, side.letter) : null, holder),
		legend,
		el("div", { class: "chartbox" }, memoryFacts(side.memory, saidText("growth", side))),
		two ? null : peakRankings(side.memory),
		two ? null : callTimeTable(side.memory),
	);
}

function setStack(by) {
	memory.by = by;
	for (const b of document.querySelectorAll("[data-stack]"))
		b.setAttribute("aria-pressed", String(b.dataset.stack === by));
	for (const draw of memory.panels) draw();
}

function stackChoice(by) {
	return el(
		"button",
		{
			class: "small",
			type: "button",
			"data-stack": by,
			"aria-pressed": String(by === memory.by),
			click: () => setStack(by),
		},
		stackText[by],
	);
}

const hasMemory = (m) => m.alloc_count || m.series.some((p) => p.host_max_bytes);

function memorySection() {
	const there = sides.filter((s) => hasMemory(s.memory));
	if (!there.length)
		return section(
			"memory",
			"Memory",
			null,
			empty(
				"No allocation is in this trace. If the program made some, it made them before the recording, or the level left them out (",
				el("code", {}, "weir record --level full"),
				" keeps them).",
			),
		);
	memory.by = firstStack();
	const scale = memoryScale();
	const s = section("memory", "Memory", "sizes as requested", ...there.map((side) => memoryPanel(side, scale)));
	s.firstChild.append(el("div", { class: "push" }, ...stackKinds().map(stackChoice)));
	painted.push(() => memory.panels.forEach((draw) => draw()));
	return s;
}
