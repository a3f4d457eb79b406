/*
 * Tables: sorted by a click on a heading, filtered by the search.  A column is
 * { key, head, show, number, bar, text }: `key` may be a function of the row.
 */
"use strict";

const ROWS_SHOWN = 25;

function barCell(text, share) {
	const fill = el("i");
	fill.style.width = `calc((100% - 12px) * ${Math.max(0, Math.min(1, share)).toFixed(4)})`;
	return el("td", { class: "bar num" }, fill, el("span", {}, text));
}

const valueOf = (column, row) =>
	typeof column.key === "function" ? column.key(row) : row[column.key];

function compare(column, down) {
	return (a, b) => {
		const x = valueOf(column, a),
			y = valueOf(column, b);
		const nothing = (v) => v === null || v === undefined || v === "";
		if (nothing(x) || nothing(y)) return Number(nothing(x)) - Number(nothing(y));
		const order = typeof x === "string" ? x.localeCompare(y) : x - y;
		return down ? -order : order;
	};
}

class Table {
	constructor(columns, rows, sortBy) {
		this.columns = columns.filter((c) =>
			rows.some((r) => {
				const v = valueOf(c, r);
				return (
					v !== null &&
					v !== undefined &&
					v !== "" &&
					!(c.hideZero && !v)
				);
			}),
		);
		const at = this.columns.findIndex((c) => c.text);
		if (innerWidth < 640 && at > 1)
			/* a name that stands last is not seen on a phone */
			this.columns.splice(1, 0, ...this.columns.splice(at, 1));
		this.rows = rows;
		this.shown = ROWS_SHOWN;
		this.column = this.columns.find((c) => c.key === sortBy) || this.columns[0];
		this.down = true;
		this.most = new Map(
			this.columns
				.filter((c) => c.bar)
				.map((c) => [
					c,
					rows.reduce((a, r) => Math.max(a, valueOf(c, r) || 0), 0),
				]),
		);
		this.head = el("tr", {}, ...this.columns.map((c) => this.heading(c)));
		this.body = el("tbody");
		this.more = el("div", { class: "more" });
		this.element = el(
			"div",
			{},
			el(
				"div",
				{ class: "sheet" },
				el(
					"table",
					{ class: at < 0 ? "loose" : null },
					el("thead", {}, this.head),
					this.body,
				),
			),
			this.more,
		);
		search.listeners.push(() => this.draw());
		this.draw();
	}

	heading(c) {
		const act = () => {
			this.down = this.column === c ? !this.down : !c.text;
			this.column = c;
			this.draw();
		};
		return el(
			"th",
			{ scope: "col", class: c.number || c.bar ? "num" : null, title: c.title },
			el("button", { type: "button", click: act }, c.head),
		);
	}

	cell(c, row) {
		const value = valueOf(c, row);
		const shown =
			value === null || value === undefined
				? ""
				: c.show
					? c.show(value, row)
					: String(value);
		if (c.bar) return barCell(shown, this.most.get(c) ? value / this.most.get(c) : 0);
		if (c.text)
			return el(
				"td",
				{ class: "text" },
				el(
					"button",
					{
						type: "button",
						title: value,
						click: () => putSearch(value),
					},
					shown,
				),
			);
		return el("td", { class: c.number ? "num" : null }, shown);
	}

	matching() {
		const texts = this.columns.filter((c) => c.text);
		return search.query
			? this.rows.filter((r) =>
					texts.some((c) => matchesText(String(valueOf(c, r) || ""))),
				)
			: this.rows;
	}

	draw() {
		const rows = [...this.matching()].sort(compare(this.column, this.down));
		this.columns.forEach((c, i) =>
			this.head.children[i].setAttribute(
				"aria-sort",
				c !== this.column ? "none" : this.down ? "descending" : "ascending",
			),
		);
		this.body.replaceChildren(
			...rows
				.slice(0, this.shown)
				.map((r) =>
					el("tr", {}, ...this.columns.map((c) => this.cell(c, r))),
				),
		);
		const left = rows.length - this.shown;
		this.more.hidden = left <= 0 && rows.length > 0;
		this.more.replaceChildren(
			rows.length
				? el(
						"button",
						{
							class: "small",
							type: "button",
							click: () => {
								this.shown += 500;
								this.draw();
							},
						},
						`show ${count(Math.min(left, 500))} more of ${count(rows.length)}`,
					)
				: el("span", { class: "note" }, "Nothing here matches the search."),
		);
	}
}

/* A click on a name searches for it everywhere; another one forgets it. */
function putSearch(text) {
	const box = document.getElementById("search");
	box.value = search.query === text.trim().toLowerCase() ? "" : text;
	setSearch(box.value);
}

const nameColumn = { key: "name", head: "name", text: true, show: readable };
const numberColumn = (key, head, show = count, more = {}) => ({
	key,
	head,
	show,
	number: true,
	...more,
});
const barColumn = (key, head, show = time) => ({ key, head, show, bar: true });

function tableSection(id, title, note, rows, columns, sortBy, why) {
	if (!rows.length) return section(id, title, null, empty(...why));
	return section(
		id,
		title,
		note,
		el("div", { class: "panel" }, new Table(columns, rows, sortBy).element),
	);
}

const withoutGpu = [
	"It says so only of traces with work of devices: ",
	el("code", {}, "weir record --gpu"),
	", or ",
	el("code", {}, "weir import"),
	" of another tool's trace.",
];

function kernelsSection() {
	const sampled = report.totals.sampled;
	const key = sampled ? "device_total_estimate_ns" : "device_total_ns";
	const timed = report.kernels.some((k) => k[key]);
	const all = report.kernels.reduce((sum, k) => sum + (k[key] || 0), 0);
	const columns = [
		barColumn(
			timed ? key : "host_total_ns",
			!timed
				? "time in launches"
				: sampled
					? "time on the GPU, estimated"
					: "time on the GPU",
		),
		...(sampled
			? [
					numberColumn("device_total_estimate_error_ns", "±", time),
					numberColumn("device_timed", "timed"),
				]
			: []),
		numberColumn(
			(k) => (timed && k[key] ? k[key] / all : null),
			"share",
			(v) => percent(v, 1),
		),
		numberColumn("count", "runs"),
		numberColumn(
			(k) => (timed && k.count && k[key] ? k[key] / k.count : null),
			"mean",
			time,
		),
		numberColumn("device_p50_ns", "median", time),
		numberColumn("graph_count", "in graphs", count, { hideZero: true }),
		...(timed
			? [numberColumn("host_total_ns", "in launches", time, { hideZero: true })]
			: []),
		{ key: (k) => triple(k.grid), head: "grid" },
		{ key: (k) => triple(k.block), head: "block" },
		numberColumn("shapes", "shapes"),
		{ key: "class", head: "bound by", show: boundText },
		nameColumn,
	];
	const s = tableSection(
		"kernels",
		"Kernels",
		"a click on a name shows it in all views",
		report.kernels,
		columns,
		timed ? key : "host_total_ns",
		["No kernel was launched while this was recorded."],
	);
	if (report.kernels.length && !timed)
		s.append(
			el(
				"p",
				{ class: "note" },
				"Recorded without device times: run ",
				el("code", {}, "weir record --gpu"),
				" to learn how long kernels ran.",
			),
		);
	return s;
}

function operatorsSection() {
	const columns = [
		barColumn("device_total_ns", "on the GPU, with what is inside"),
		numberColumn("device_self_ns", "on the GPU, itself", time),
		numberColumn("span_p50_ns", "one's span, median", time, { hideZero: true }),
		barColumn("host_total_ns", "on the host"),
		numberColumn("host_self_ns", "on the host, itself", time),
		numberColumn("count", "times"),
		numberColumn("device_count", "pieces of work"),
		{ key: "class", head: "bound by", show: boundText },
		{ key: "kind", head: "kind" },
		nameColumn,
	];
	const sortBy = report.operators.some((o) => o.device_total_ns)
		? "device_total_ns"
		: "host_total_ns";
	return tableSection(
		"operators",
		"Operators and ranges",
		null,
		report.operators,
		columns,
		sortBy,
		[
			"The trace has no operators, annotations or NVTX ranges. ",
			el("code", {}, "weir import"),
			" of a trace of torch.profiler brings them.",
		],
	);
}

function callsSection() {
	const columns = [
		barColumn("total_ns", "time"),
		numberColumn("count", "calls"),
		numberColumn("p50_ns", "median", time),
		numberColumn("p99_ns", "99th percentile", time),
		numberColumn("max_ns", "longest", time),
		numberColumn("errors", "failing", count, { hideZero: true }),
		{ key: "api", head: "API" },
		{ key: "class", head: "class" },
		nameColumn,
	];
	return tableSection(
		"calls",
		"Calls of CUDA",
		"time in the call, on the host",
		report.calls,
		columns,
		"total_ns",
		["No call is in this trace."],
	);
}

function copiesSection() {
	const way = (c) => c.direction || (c.kind === "set" ? "set" : "");
	if (report.device_copies.length)
		return tableSection(
			"copies",
			"Copies and sets",
			"on the device",
			report.device_copies,
			[
				barColumn("device_total_ns", "time on the GPU"),
				numberColumn("count", "times"),
				numberColumn("bytes", "bytes", bytes),
				numberColumn("bytes_per_second", "rate", rate),
				numberColumn("device_p50_ns", "median", time),
				{ key: "from", head: "from" },
				{ key: "to", head: "to" },
				{ key: way, head: "direction" },
			],
			"device_total_ns",
			[],
		);
	const rows = [
		...report.copies,
		...(report.sets.count ? [{ ...report.sets, direction: "set" }] : []),
	];
	return tableSection(
		"copies",
		"Copies and sets",
		"as they were asked for",
		rows,
		[
			barColumn("bytes", "bytes", bytes),
			numberColumn("count", "calls"),
			numberColumn((c) => (c.count ? c.bytes / c.count : null), "mean", bytes),
			{ key: way, head: "direction" },
		],
		"bytes",
		["Nothing was copied or set while this was recorded."],
	);
}

const rate = (v) => scaled(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);

function failuresSection() {
	if (!report.failures.length) return null;
	return tableSection(
		"failures",
		"Calls that failed",
		null,
		report.failures,
		[
			numberColumn("count", "times"),
			{ key: "name", head: "call", text: true },
			{ key: (f) => f.error || `error ${f.code}`, head: "error" },
			numberColumn("first_ns", "first at", time),
			numberColumn("tid", "thread", String),
		],
		"count",
		[],
	);
}
