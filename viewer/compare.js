/*
 * Two recordings beside each other: what differs first, then the same parts as of one.  The numbers are
 * those of weir diff.
 */
"use strict";

const sideKeys = ["a", "b"];

/* As weir diff calls them. */
function unitOf(key) {
	return key.endsWith("_ns") ? time : key.endsWith("_bytes") ? bytes : count;
}

function signed(v, show) {
	return v === null || v === undefined ? "" : v === 0 ? "0" : (v < 0 ? "−" : "+") + show(Math.abs(v));
}

/* "1.83×"; B's by A's. */
function ratioText(v) {
	return v === null || !Number.isFinite(v) ? "" : `${v >= 9.995 ? v.toPrecision(3) : v.toFixed(2)}×`;
}

const ratioOf = (a, b) => (a && b !== null && b !== undefined ? b / a : null);

const changeText = (pct) => (pct === null ? "" : `${signed(pct, (x) => x.toFixed(x < 10 ? 1 : 0))} %`);

const verdictColumn = column(
	"verdict",
	"verdict",
	"Verdict on the median of one run, call or range: faster, slower, same, new or gone. Empty if the numbers cannot tell a difference from chance.",
	(v) => v || "",
);

const ratioColumn = (key) =>
	numberColumn(key, "B ÷ A", "B's value divided by A's: below 1 is less in B.", ratioText);

function totalsRows() {
	return Object.entries(data.diff.totals)
		.filter(([, t]) => t.a || t.b)
		.map(([key, t]) => ({ name: t.text, show: unitOf(key), ...t }));
}

function totalsTable() {
	const value = (side) =>
		numberColumn(side, side.toUpperCase(), `In ${side.toUpperCase()}.`, (v, row) => row.show(v));
	const columns = [
		nameColumn("The sum of this row."),
		value("a"),
		value("b"),
		ratioColumn((t) => ratioOf(t.a, t.b)),
		column("change_pct", "change", "The change of B against A.", changeText),
		verdictColumn,
	];
	return new Table(columns, totalsRows(), null).element;
}

/* The largest changes of all that ran on a device; a change that is next to nothing beside them is
 * left out. */
function largestChanges() {
	const rows = ["kernels", "memops"].flatMap((table) =>
		data.diff[table].map((r) => ({
			...r,
			what: table === "kernels" ? "kernel" : copyName(r.name),
			from: r.a && r.a.total_ns,
			to: r.b && r.b.total_ns,
		})),
	);
	const most = Math.max(...rows.map((r) => Math.abs(r.change_ns || 0)));
	return rows
		.filter((r) => Math.abs(r.change_ns || 0) > most / 200)
		.sort((x, y) => Math.abs(y.change_ns) - Math.abs(x.change_ns))
		.slice(0, 10);
}

const copyName = (name) => (name.startsWith("memcpy") ? name : `memcpy ${name}`);

/* More runs make a total larger, and nothing slower. */
function runsText(r) {
	return r.a.count === r.b.count ? `${count(r.a.count)} runs` : `${count(r.a.count)} → ${count(r.b.count)} runs`;
}

function changeLine(r) {
	const amount = signed(r.change_ns, time);
	const how =
		r.verdict === "new"
			? `only in B: ${time(r.to)}`
			: r.verdict === "gone"
				? `only in A: ${time(r.from)}`
				: `${time(r.from)} → ${time(r.to)}, ${runsText(r)}${r.verdict ? `, one run: ${r.verdict}` : ""}`;
	return el(
		"li",
		{},
		el("b", { class: r.change_ns < 0 ? "less" : "more-time" }, amount),
		paint(el("i", { class: "swatch" }), () =>
			r.what === "kernel" ? kernelColour(r.name) : colourOf(r.what === "memset" ? "set" : "copy", MIDDLE),
		),
		r.what === "kernel"
			? el(
					"button",
					{ class: "link", type: "button", title: r.name, click: () => putSearch(r.name) },
					shorten(r.name),
				)
			: el("span", {}, r.what),
		el("span", { class: "note" }, how),
	);
}

function comparedSection() {
	const changes = largestChanges();
	const s = section(
		"overview",
		"What differs",
		"B against A, by weir diff",
		el("p", { class: "conclusion" }, data.diff.conclusion.join(" ")),
		data.diff.notes.length
			? el("ul", { class: "warnings" }, ...data.diff.notes.map((n) => el("li", {}, n)))
			: null,
		el(
			"div",
			{ class: "differs" },
			changes.length
				? el(
						"div",
						{ class: "panel changes" },
						el("h3", {}, "Largest changes of time on the GPU"),
						el("ul", {}, ...changes.map(changeLine)),
					)
				: null,
			el("div", { class: "panel" }, totalsTable()),
		),
	);
	s.classList.add("first");
	return s;
}

function comparedHead() {
	const one = (side, key) => {
		const run = data.diff.runs[key][0],
			t = side.report.trace,
			p = side.report.provenance;
		const about = [run.file, t.host ? `on ${t.host}` : "", ...p.devices.map((d) => d.name)];
		return el(
			"div",
			{},
			el("h1", {}, el("span", { class: "letter" }, side.letter), run.program || "a trace without the name of a program"),
			el("p", { class: "sub" }, ...about.filter(Boolean).map((b) => el("span", {}, b))),
		);
	};
	const [a, b] = sideKeys.map((k) => data.diff.runs[k][0]);
	document.title = `${a.file} | ${b.file} · weir`;
	return el(
		"header",
		{ class: "wide" },
		el("div", { class: "brand" }, "weir"),
		...sides.map((side, i) => one(side, sideKeys[i])),
	);
}

const part = (side, key) => (r) => (r[side] ? r[side][key] : null);

/* The same column of both, the second beside the first. */
function bothColumns(rows, key, head, help, show) {
	return sideKeys.map((side) => {
		const letter = side.toUpperCase(),
			of = part(side, key);
		const texts = [of, `${head} ${letter}`, `${help} In ${letter}.`, show];
		if (head !== "time") return numberColumn(...texts);
		const most = Math.max(...rows.flatMap((r) => sideKeys.map((s) => part(s, key)(r) || 0)));
		return { ...barColumn(...texts), most };
	});
}

function comparedTable(id, title, note, table, more) {
	const rows = data.diff[table];
	const change = numberColumn(
		(r) => (r.change_ns === null ? null : Math.abs(r.change_ns)),
		"total change",
		"Change of the total time, B against A.",
		(v, r) => signed(r.change_ns, time),
	);
	const columns = [
		nameColumn("The subject of the row.", more),
		verdictColumn,
		numberColumn("median_change_pct", "median change", "Change of the median of one, B against A. The verdict is about this.", changeText),
		change,
		...bothColumns(rows, "total_ns", "time", "The total of all of them.", time),
		ratioColumn((r) => (r.a && r.b ? ratioOf(r.a.total_ns, r.b.total_ns) : null)),
		...bothColumns(rows, "p50_ns", "median", "Half took less, half more.", time).map(seldom),
		...bothColumns(rows, "count", "runs", "How many there were.").map(seldom),
		...(table === "memops" ? bothColumns(rows, "bytes", "bytes", "All bytes that were copied or set.", bytes) : []),
	];
	return tableSection(id, title, note, rows, columns, change.key, ["Neither recording has any."]);
}

function phasesSection() {
	const rows = data.diff.phases;
	if (!rows.length) return null;
	return tableSection(
		"phases",
		"Phases",
		"ranges that the program names, the median one",
		rows,
		[
			nameColumn("The range."),
			verdictColumn,
			numberColumn("factor", "A ÷ B", "How many times as fast B is.", ratioText),
			...bothColumns(rows, "span_p50_ns", "span on device", "The median range: from the start of the first GPU activity that was launched inside to the end of the last, idle gaps included.", time),
			...bothColumns(rows, "host_p50_ns", "on the host", "The time from its begin to its end.", time),
			...bothColumns(rows, "count", "runs", "How many there were."),
		],
		"factor",
		[],
	);
}

function comparedTables() {
	const times = data.diff.kernel_times === "device" ? "time on the GPU" : "time in launches";
	return [
		phasesSection(),
		comparedTable("kernels", "Kernels", times, "kernels", { swatch: (k) => kernelColour(k.name) }),
		comparedTable("operators", "Operators and ranges", null, "operators"),
		comparedTable("calls", "CUDA calls", "time in the call, on the host", "calls"),
		comparedTable("copies", "Copies and memsets", null, "memops", { show: copyName }),
	];
}

function comparedBreakdown() {
	const both = sides.filter((s) => s.report.breakdown);
	if (both.length < 2)
		return section(
			"time",
			"Where the time went",
			null,
			empty(
				"One of the recordings has no GPU activities, so its time can't be divided. ",
				el("code", {}, "weir record --gpu"),
				" records them.",
			),
		);
	const most = Math.max(...both.map((s) => sumOf(s.report.breakdown)));
	return section(
		"time",
		"Where the time went",
		"wall time, on a common scale",
		...both.flatMap((s) => {
			const whole = sumOf(s.report.breakdown);
			const [bar, keys] = stacked(s.report.breakdown, whole, `Wall time of ${s.letter}`);
			bar.style.width = `${(100 * whole) / most}%`;
			return [el("h3", { class: "gap" }, `${s.letter}: ${time(whole)}`), bar, keys];
		}),
	);
}
