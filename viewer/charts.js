/* The parts of the time: bars that add up, and the longest idle gaps. */
"use strict";

/* A part's name, and its colour of the palette. */
const partLook = {
	computing: ["kernels running", "kernel"],
	communicating: ["communication between devices", "communication"],
	copying: ["memcpy and memset", "copy"],
	queue: ["queued behind other GPU activities", "queue"],
	launch: ["launch latency: from the call to the GPU", "call"],
	idle_launch_bound: ["idle, launch-bound: host still launching", "call"],
	idle_waiting: ["idle: host in a synchronizing call", "wait"],
	idle_driver: ["idle: host in another long CUDA call", "error"],
	idle_host_busy: ["idle: host busy outside CUDA", "python"],
	idle_queued: ["idle: queued activities had not begun", "queue"],
	idle_unknown: ["idle: cause not known", "other"],
	off: ["not recorded: switched off", "other"],
	before: ["before the first GPU activity", "other"],
	after: ["after the last GPU activity", "other"],
	host: ["host, in CUDA calls or outside", "python"],
	waiting: ["host synchronizing", "wait"],
	overlapped: ["host and GPU at once: the GPU alone would take as long", "other"],
	unknown: ["not known: computed, or woken by another thread", "other"],
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

/* The words of weir report under its table, without the label in front. */
const saidText = (key, of = data) => of.said[key].replace(/^ *[a-z]+ +/, "").replace(/\s+/g, " ").trim();

function saidNotes(key) {
	const text = saidText(key);
	return text ? [el("p", { class: "note" }, text)] : [];
}

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
			...saidNotes("slack"),
		);
	if ((report.idle_gaps || []).length)
		s.append(
			el("h3", { class: "gap" }, "Longest idle gaps: no GPU ran anything"),
			el("div", { class: "panel" }, idleGapsTable()),
		);
	return s;
}

function culprit(p) {
	return [p.call, p.operator, p.module, p.line].filter(Boolean).join(", ");
}

function idleGapsTable() {
	const go = (p) => () => {
		look(p.start_ns - p.ns * 0.6, p.start_ns + p.ns * 1.6);
		document.getElementById("timeline").scrollIntoView();
	};
	const most = report.idle_gaps[0].ns,
		shown = report.idle_gaps.slice(0, 6),
		blamed = shown.some(culprit);
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
						["cause", "The host's state for most of the gap."],
						["idle", "The time in which no GPU ran anything."],
						["at", "The begin of the gap. A click shows it in the timeline."],
						...(blamed ? [["culprit", "The call, operator, module and line in which the host was."]] : []),
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
				...shown.map((p) =>
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
						...(blamed ? [el("td", { class: "text even", title: culprit(p) }, shorten(culprit(p)))] : []),
						el(
							"td",
							{
								class: "text even",
								title: p.after,
							},
							shorten(p.after),
						),
						el(
							"td",
							{
								class: "text even",
								title: p.before,
							},
							shorten(p.before),
						),
					),
				),
			),
		),
	);
}

/* Draws again when the width changes. */
function watchWidth(holder, draw) {
	let last = 0;
	new ResizeObserver(() => {
		const width = Math.round(holder.clientWidth);
		if (width > 50 && width !== last) draw((last = width));
	}).observe(holder);
}
