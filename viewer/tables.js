/*
 * Tables: sorted by a click on a heading, filtered by the search.  A column is
 * { key, head, help, show, number, bar, text, swatch }: `key` may be a function of the row, `help` says
 * in a sentence what stands there.
 */
"use strict";

const ROWS_SHOWN = 25;

/* Columns that can be done without are left out where there is little room. */
const classOf = (c, more) => [more, c.seldom ? "seldom" : ""].filter(Boolean).join(" ") || null;

function barCell(text, share, more) {
	const fill = el("i");
	fill.style.width = `calc((100% - 12px) * ${Math.max(0, Math.min(1, share)).toFixed(4)})`;
	return el("td", { class: more ? `bar num ${more}` : "bar num" }, fill, el("span", {}, text));
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
		this.rows = rows;
		this.shown = ROWS_SHOWN;
		/* Without a column to sort by the rows stand as they are given. */
		this.column = sortBy ? this.columns.find((c) => c.key === sortBy) || this.columns[0] : null;
		this.down = true;
		this.most = new Map(
			this.columns
				.filter((c) => c.bar)
				.map((c) => [
					c,
					c.most || rows.reduce((a, r) => Math.max(a, valueOf(c, r) || 0), 0),
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
			columnsHelp(this.columns),
		);
		search.listeners.push(() => this.draw());
		painted.push(() => this.draw());
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
			{ scope: "col", class: classOf(c, c.number || c.bar ? "num" : ""), title: c.help },
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
		if (c.bar) return barCell(shown, this.most.get(c) ? value / this.most.get(c) : 0, classOf(c, ""));
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
					c.swatch ? swatchOf(c.swatch(row)) : null,
					shown,
				),
			);
		return el("td", { class: classOf(c, c.number ? "num" : "") }, shown);
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
		const rows = [...this.matching()];
		if (this.column) rows.sort(compare(this.column, this.down));
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

/* For those who have no pointer to hold over a heading. */
function columnsHelp(columns) {
	return el(
		"details",
		{ class: "more" },
		el("summary", {}, "What the columns mean"),
		el(
			"dl",
			{ class: "columns" },
			...columns.flatMap((c) => [el("dt", {}, c.head), el("dd", {}, c.help)]),
		),
	);
}

function swatchOf(colour) {
	const swatch = el("i", { class: "swatch" });
	swatch.style.background = colour;
	return swatch;
}

/* A click on a name searches for it everywhere; another one forgets it. */
function putSearch(text) {
	const box = document.getElementById("search");
	box.value = search.query === text.trim().toLowerCase() ? "" : text;
	setSearch(box.value);
}

const nameColumn = (help, more = {}) => ({
	key: "name",
	head: "name",
	help: help + " A click searches for it in all views.",
	text: true,
	show: readable,
	...more,
});
const column = (key, head, help, show) => ({ key, head, help, show });
const numberColumn = (key, head, help, show = count, more = {}) => ({
	key,
	head,
	help,
	show,
	number: true,
	...more,
});
const barColumn = (key, head, help, show = time) => ({ key, head, help, show, bar: true });
const seldom = (c) => ({ ...c, seldom: true });
const boundColumn = column(
	"class",
	"bound by",
	"The limit: compute or memory with the share of the device's ceiling, launch if the GPU waited for the host, or latency. A question mark means a guess by the name.",
	boundText,
);

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
	"This needs a trace with GPU activities: ",
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
		nameColumn("The kernel, without the types of its parameters. Its colour is the same in all views.", {
			swatch: (k) => kernelColour(k.name),
		}),
		barColumn(
			timed ? key : "host_total_ns",
			!timed ? "time in launches" : sampled ? "time on the GPU, estimated" : "time on the GPU",
			timed
				? "The total of all runs of the kernel on the GPU."
				: "The host's time in the calls that launch the kernel.",
		),
		...(sampled
			? [
					numberColumn(
						"device_total_estimate_error_ns",
						"±",
						"Half the width of the 95 % confidence interval.",
						time,
					),
					numberColumn("device_timed", "timed", "How many of the runs were timed."),
				]
			: []),
		numberColumn(
			(k) => (timed && k[key] ? k[key] / all : null),
			"share",
			"Its share of the time of all kernels.",
			(v) => percent(v, 1),
		),
		numberColumn("count", "runs", "How often the kernel ran."),
		numberColumn(
			(k) => (timed && k.count && k[key] ? k[key] / k.count : null),
			"mean",
			"Time of one run on the GPU, on average.",
			time,
		),
		numberColumn(
			"device_p50_ns",
			"median",
			"Half of the runs took less on the GPU, half more.",
			time,
		),
		numberColumn("graph_count", "in graphs", "Runs as part of a CUDA graph.", count, {
			hideZero: true,
		}),
		...(timed
			? [
					numberColumn(
						"host_total_ns",
						"in launches",
						"The host's time in the calls that launch the kernel.",
						time,
						{ hideZero: true },
					),
				]
			: []),
		seldom(column((k) => triple(k.grid), "grid", "Blocks of a launch (x, y, z), the most common.")),
		seldom(column((k) => triple(k.block), "block", "Threads of a block (x, y, z), the most common.")),
		seldom(numberColumn("shapes", "shapes", "How many different pairs of grid and block.")),
		boundColumn,
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
		nameColumn("The operator, annotation or range."),
		barColumn(
			"device_total_ns",
			"GPU total",
			"Time of the GPU activities that were launched inside, also in operators inside of it.",
		),
		numberColumn(
			"device_self_ns",
			"GPU self",
			"The same without the operators inside.",
			time,
		),
		numberColumn(
			"span_p50_ns",
			"span",
			"Median, from the start of the first GPU activity of one to the end of the last.",
			time,
			{ hideZero: true },
		),
		barColumn("host_total_ns", "host total", "Time between its begin and its end on the host."),
		numberColumn(
			"host_self_ns",
			"host self",
			"The same without the operators inside.",
			time,
		),
		numberColumn("count", "times", "How often it was called, or entered."),
		numberColumn(
			"device_count",
			"activities",
			"Kernels, memcpys and memsets that it launched itself.",
		),
		boundColumn,
		seldom(column("kind", "kind", "An operator of a library, an annotation of the program, or an NVTX range.")),
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
		nameColumn("The function."),
		barColumn("total_ns", "time", "The total of all calls of the function, on the host."),
		numberColumn("count", "calls", "How often it was called."),
		numberColumn("p50_ns", "median", "Half of the calls took less, half more.", time),
		numberColumn("p99_ns", "p99", "99 of 100 calls took less.", time),
		numberColumn("max_ns", "longest", "The longest call.", time),
		numberColumn("errors", "failing", "Calls that returned an error.", count, {
			hideZero: true,
		}),
		column("api", "API", "The CUDA runtime or the driver. Calls of the driver may be inside those of the runtime."),
		column("class", "class", "The kind of call: launch, copy, memory, sync and so on."),
	];
	return tableSection(
		"calls",
		"CUDA calls",
		"time in the call, on the host",
		report.calls,
		columns,
		"total_ns",
		["No call is in this trace."],
	);
}

function copiesSection() {
	const way = (c) => c.direction || (c.kind === "memset" ? "memset" : "");
	if (report.memops.length)
		return tableSection(
			"copies",
			"Copies and memsets",
			"on the device",
			report.memops,
			[
				column(way, "direction", "H is the host, D a device: HtoD is to a device."),
				barColumn("device_total_ns", "time on the GPU", "The total of all of them."),
				numberColumn("count", "times", "How many there were."),
				numberColumn("bytes", "bytes", "All bytes that were copied or set.", bytes),
				numberColumn("bytes_per_second", "rate", "Bytes a second.", rate),
				numberColumn("device_p50_ns", "median", "Half took less, half more.", time),
				column("from", "from", "The memory that was read: device, or pinned or pageable host memory."),
				column("to", "to", "The memory that was written."),
			],
			"device_total_ns",
			[],
		);
	const rows = [
		...report.memcpys,
		...(report.memsets.count ? [{ ...report.memsets, direction: "memset" }] : []),
	];
	return tableSection(
		"copies",
		"Copies and memsets",
		"as requested by calls",
		rows,
		[
			column(way, "direction", "H is the host, D a device: HtoD is to a device."),
			barColumn("bytes", "bytes", "All bytes that calls copied or set.", bytes),
			numberColumn("count", "calls", "How many calls did that."),
			numberColumn(
				(c) => (c.count && c.bytes !== null ? c.bytes / c.count : null),
				"mean",
				"Bytes of one call on average.",
				bytes,
			),
		],
		"bytes",
		["There was no memcpy and no memset while this was recorded."],
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
			{ key: "name", head: "call", help: "The function.", text: true },
			numberColumn("count", "times", "How often the call failed so."),
			column((f) => f.error || `error ${f.code}`, "error", "What it returned."),
			column((f) => f.probe ? "no" : "", "fault", "Whether it may be a fault. Some programs try a call and expect a failure."),
			numberColumn("first_ns", "first at", "The first failure, since the recording began.", time),
			numberColumn("tid", "thread", "The thread that called.", String),
		],
		"count",
		[],
	);
}
