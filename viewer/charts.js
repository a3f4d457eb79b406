/* Pictures drawn once: where the time went, memory over time, the roofline. */
"use strict";

/* ---- bars that add up ---- */

/* What it is called, and what of the palette it has. */
const partLook = {
	computing: ["kernels running", "kernel"],
	communicating: ["communication between devices", "communication"],
	copying: ["memcpy and memset", "copy"],
	queue: ["queued behind other GPU activities", "queue"],
	launch: ["launch latency: from the call to the GPU", "call"],
	idle_launching: ["idle, launch-bound: host still launching", "call"],
	idle_waiting: ["idle: host in a synchronizing call", "wait"],
	idle_driver: ["idle: host in another long CUDA call", "error"],
	idle_host: ["idle: host busy outside CUDA", "python"],
	idle_queued: ["idle: queued activities had not begun", "queue"],
	idle_unknown: ["idle: cause not known", "other"],
	before: ["before the first GPU activity", "other"],
	after: ["after the last GPU activity", "other"],
	host: ["host, in CUDA calls or outside", "python"],
	waiting: ["host synchronizing", "wait"],
};

const partColour = (name) => colourOf((partLook[name] || ["", "other"])[1], MIDDLE);

const partText = (name) => (partLook[name] || [name.replaceAll("_", " ")])[0];

/* A bar of parts that together are all of `whole`, and what each is. */
function stacked(parts, whole, text) {
	const bar = el("div", {
		class: "stack",
		role: "img",
		"aria-label":
			`${text}: ` +
			parts
				.filter((p) => p.ns)
				.map((p) => `${partText(p.name)} ${percent(p.ns, whole)}`)
				.join(", "),
	});
	const keys = el("div", { class: "keys" });
	for (const p of parts.filter((q) => q.ns > 0)) {
		const part = el("div", {}, p.ns > whole * 0.09 ? percent(p.ns, whole) : "");
		part.style.flex = `${p.ns / whole} 1 0`;
		paint(part, () => partColour(p.name));
		part.addEventListener("pointermove", (e) =>
			showTip(e.clientX, e.clientY, partText(p.name), [
				["", time(p.ns)],
				["", percent(p.ns, whole)],
			]),
		);
		part.addEventListener("pointerleave", hideTip);
		bar.append(part);
		const swatch = paint(el("i"), () => partColour(p.name));
		keys.append(
			el(
				"div",
				{ class: "key" },
				swatch,
				el("span", { title: partText(p.name) }, partText(p.name)),
				el("b", {}, time(p.ns)),
				el("em", {}, percent(p.ns, whole)),
			),
		);
	}
	return [bar, keys];
}

const sumOf = (parts) => parts.reduce((sum, p) => sum + p.ns, 0);

function breakdownSection() {
	const parts = report.breakdown;
	if (!parts)
		return section(
			"time",
			"Where the time went",
			null,
			empty(
				report.totals.sampled
					? "One launch in some was timed, so what the devices did at each moment is not known. "
					: "This trace has no GPU activities, so the time can't be divided. ",
				el("code", {}, "weir record --gpu"),
				" records when each kernel, memcpy and memset ran.",
			),
		);
	const s = section(
		"time",
		"Where the time went",
		`${time(sumOf(parts))} of wall time, every nanosecond once`,
		...stacked(parts, sumOf(parts), "Wall time"),
	);
	const path = report.critical_path || [];
	if (sumOf(path) > 0)
		s.append(
			el(
				"h3",
				{ class: "gap" },
				"The critical path: what would have to be faster for the program to be faster",
			),
			...stacked(path, sumOf(path), "Critical path"),
		);
	if ((report.pauses || []).length)
		s.append(
			el("h3", { class: "gap" }, "Longest idle gaps: no GPU ran anything"),
			el("div", { class: "panel" }, idleGapsTable()),
		);
	return s;
}

function idleGapsTable() {
	const go = (p) => () => {
		look(p.start_ns - p.ns * 0.6, p.start_ns + p.ns * 1.6);
		document.getElementById("timeline").scrollIntoView();
	};
	const most = report.pauses[0].ns;
	return el(
		"div",
		{ class: "sheet" },
		el(
			"table",
			{},
			el(
				"thead",
				{},
				el(
					"tr",
					{},
					...[
						["cause", "What the host did for most of it."],
						["idle", "How long no GPU ran anything."],
						["at", "When that began; a click shows it in the timeline."],
						["after", "What ended before."],
						["before", "What ran next."],
					].map(([head, help]) =>
						el("th", { scope: "col", title: help }, head),
					),
				),
			),
			el(
				"tbody",
				{},
				...report.pauses.slice(0, 6).map((p) =>
					el(
						"tr",
						{},
						el(
							"td",
							{},
							partText(p.cause).replace(/^idle[:,] /, ""),
						),
						barCell(time(p.ns), p.ns / most),
						el(
							"td",
							{},
							el(
								"button",
								{
									class: "link",
									type: "button",
									click: go(p),
								},
								time(p.start_ns),
							),
						),
						el(
							"td",
							{
								class: "text even",
								title: p.before,
							},
							shorten(p.before),
						),
						el(
							"td",
							{
								class: "text even",
								title: p.after,
							},
							shorten(p.after),
						),
					),
				),
			),
		),
	);
}

/* ---- memory ---- */

const CHART = { height: 236, left: 66, right: 14, top: 22, bottom: 26 };

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

function memoryChart(width) {
	const m = data.memory,
		series = m.series,
		c = CHART;
	const first = 0,
		last = series[series.length - 1].at_ns || 1;
	const most = Math.max(m.peak_bytes, ...series.map((p) => p.host_max_bytes), 1);
	const x = (p) =>
		c.left + ((p.at_ns - first) / (last - first || 1)) * (width - c.left - c.right);
	const y = (v) => c.height - c.bottom - (v / most) * (c.height - c.top - c.bottom);
	const picture = svg("svg", {
		class: "chart",
		viewBox: `0 0 ${width} ${c.height}`,
		height: c.height,
		role: "img",
		"aria-label": `Live memory over time: at most ${bytes(m.peak_bytes)}, at the end ${bytes(m.live_at_exit_bytes)}.`,
	});
	for (const v of byteSteps(most))
		picture.append(
			svg("line", {
				class: "grid",
				x1: c.left,
				x2: width - c.right,
				y1: y(v),
				y2: y(v),
			}),
			svg("text", { x: c.left - 8, y: y(v) + 4, "text-anchor": "end" }, bytes(v)),
		);
	const step = niceStep(last - first, width / 130);
	for (let t = 0; t <= last; t += step)
		picture.append(
			svg(
				"text",
				{ x: x({ at_ns: t }), y: c.height - 8, "text-anchor": "middle" },
				axisTime(t, step),
			),
		);
	const top = steps(series, x, (p) => y(p.max_bytes));
	picture.append(
		svg("path", {
			class: "area",
			d: `M${c.left},${y(0)}V${y(series[0].max_bytes)}H${x(series[0])}${top.slice(1).replace(/^[^H]*/, "")}V${y(0)}Z`,
		}),
		svg("path", { class: "edge", d: top }),
	);
	if (series.some((p) => p.host_max_bytes))
		picture.append(
			svg("path", {
				class: "host",
				d: steps(series, x, (p) => y(p.host_max_bytes)),
			}),
		);
	if (m.peak_at_ns !== null)
		putPeak(picture, x({ at_ns: m.peak_at_ns }), y(m.peak_bytes), width);
	followChart(picture, series, x, width);
	return picture;
}

function putPeak(picture, x, y, width) {
	const m = data.memory,
		left = x > width * 0.6;
	picture.append(
		svg("line", {
			class: "peak",
			x1: x,
			x2: x,
			y1: y,
			y2: CHART.height - CHART.bottom,
		}),
		svg("circle", { class: "dot", cx: x, cy: y, r: 4 }),
		svg(
			"text",
			{
				class: "strong",
				x: x + (left ? -9 : 9),
				y: y - 8,
				"text-anchor": left ? "end" : "start",
			},
			`peak ${bytes(m.peak_bytes)} at ${time(m.peak_at_ns)}`,
		),
	);
}

function followChart(picture, series, x, width) {
	const line = svg("line", {
		class: "peak",
		y1: CHART.top,
		y2: CHART.height - CHART.bottom,
		visibility: "hidden",
	});
	picture.append(line);
	picture.addEventListener("pointermove", (e) => {
		const at = (e.offsetX / picture.clientWidth) * width;
		const p = series.reduce((a, b) =>
			Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a,
		);
		line.setAttribute("x1", x(p));
		line.setAttribute("x2", x(p));
		line.setAttribute("visibility", "visible");
		showTip(e.clientX, e.clientY, time(p.at_ns), [
			["on the GPU", bytes(p.bytes)],
			["at most", p.max_bytes !== p.bytes ? bytes(p.max_bytes) : ""],
			["pinned", p.host_bytes ? bytes(p.host_bytes) : ""],
		]);
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

function memoryFacts() {
	const m = data.memory,
		g = m.growth;
	return facts([
		["allocations", count(m.alloc_count)],
		["frees", count(m.free_count)],
		["allocated in all", bytes(m.allocated_bytes)],
		["live at the end", bytes(m.live_at_exit_bytes)],
		["leaked", m.leaked_bytes === null ? "" : bytes(m.leaked_bytes)],
		[
			"fragmentation at the peak",
			m.fragmentation === null ? "" : percent(m.fragmentation, 1),
		],
		[
			"grows",
			g && g.bytes_per_period
				? `${g.bytes_per_period < 0 ? "−" : ""}${bytes(Math.abs(g.bytes_per_period))} an iteration (confidence ${g.confidence.toFixed(2)})`
				: "",
		],
	]);
}

function memorySection() {
	const m = data.memory;
	if (!m.alloc_count && !m.series.some((p) => p.host_max_bytes))
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
	const holder = el("div");
	const byPeak = (rows, label) =>
		rows
			.filter((r) => r.at_peak_bytes)
			.sort((a, b) => b.at_peak_bytes - a.at_peak_bytes)
			.map((r) => [
				label(r),
				r.at_peak_count,
				r.at_peak_bytes,
				bytes(r.at_peak_bytes),
			]);
	const s = section(
		"memory",
		"Memory",
		"sizes as requested",
		el(
			"div",
			{ class: "panel" },
			el("div", { class: "chartbox" }, holder, memoryFacts()),
			el(
				"div",
				{ class: "cols" },
				ranking(
					"Live at the peak, by operator",
					byPeak(
						m.by_operator,
						(r) => r.name || "(outside of all ranges)",
					),
				),
				ranking(
					"Live at the peak, by call",
					byPeak(m.by_call, (r) => r.name),
				),
				ranking(
					"Live at the peak, by size",
					byPeak(m.by_size, (r) => `${bytes(r.from_bytes)} and more`),
				),
			),
		),
	);
	watchWidth(holder, (width) => holder.replaceChildren(memoryChart(width)));
	return s;
}

/* Draws again when the width changes. */
function watchWidth(holder, draw) {
	let last = 0;
	new ResizeObserver(() => {
		const width = Math.round(holder.clientWidth);
		if (width > 50 && width !== last) draw((last = width));
	}).observe(holder);
}
