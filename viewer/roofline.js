/*
 * The roofline: what each kernel did a second against how much it did with each byte, below what the
 * device can at most.  Both axes are logarithmic; the area of a point is its share of the time.
 */
"use strict";

const ROOF = { height: 420, left: 92, right: 20, top: 16, bottom: 42 };
const unitText = {
	fp64: "FP64",
	fp32: "FP32",
	tf32: "TF32",
	fp16: "FP16/BF16",
	fp8: "FP8",
	int8: "INT8",
};

const rateOfFlops = (v) =>
	scaled(v, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"]);
const rateOfBytes = (v) => scaled(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);

/* "memory 85 %"; with a question mark when only the name says so. */
function boundText(cls, row) {
	const memory = row.bytes_share || 0;
	const share = cls === "memory" ? memory : Math.max(row.flops_share || 0, memory);
	return share > 0
		? `${cls} ${(share * 100).toFixed(0)} %`
		: row.class_basis === "name"
			? cls + "?"
			: cls;
}

/* Kernels of less than a thousandth of the time would only stretch the picture. */
function roofPoints() {
	const points = report.kernels
		.filter((k) => k.flops > 0 && k.bytes > 0 && k.costed_ns > 0)
		.map((k) => ({
			kernel: k,
			x: k.flops / k.bytes,
			y: k.flops / (k.costed_ns / 1e9),
			time: k.device_total_ns || k.costed_ns,
		}));
	const all = points.reduce((sum, p) => sum + p.time, 0);
	return points
		.filter((p) => p.time >= all / 1000)
		.sort((a, b) => b.time - a.time)
		.slice(0, 200);
}

const FAR = 10; /* times beyond the others, a point is put on the edge */

/* The range that an axis has to show: of all points, but those that are far beyond the middle 90 % of
 * the time.  One odd kernel would squeeze all others into a corner. */
function roofRange(points, of) {
	const sorted = [...points].sort((a, b) => of(a) - of(b));
	const all = points.reduce((sum, p) => sum + p.time, 0);
	let sum = 0,
		low = null,
		high = null;
	for (const p of sorted) {
		sum += p.time;
		if (low === null && sum >= all * 0.05) low = of(p);
		if (high === null && sum >= all * 0.95) high = of(p);
	}
	const near = sorted.map(of).filter((v) => v >= low / FAR && v <= high * FAR);
	return [near[0], near[near.length - 1]];
}

/* The places of points: powers of ten around the points and the ceilings. */
function roofAxes(points, peaks, memory, width) {
	const c = ROOF,
		log = Math.log10;
	const [left, right] = roofRange(points, (p) => p.x),
		[lowest] = roofRange(points, (p) => p.y),
		ridge = Math.max(...peaks.map(([, v]) => v)) / memory;
	const x0 = Math.floor(log(left) - 0.3),
		x1 = Math.ceil(log(Math.max(ridge, right)) + 0.3);
	const y0 = Math.floor(log(lowest)),
		y1 = log(Math.max(...peaks.map(([, v]) => v))) + 0.25;
	const within = (v, from, to) => Math.min(Math.max(log(v), from), to);
	return {
		x0,
		x1,
		y0,
		y1,
		beyond: (p) => log(p.x) < x0 || log(p.x) > x1 || log(p.y) < y0 || log(p.y) > y1,
		x: (v) => c.left + ((within(v, x0, x1) - x0) / (x1 - x0)) * (width - c.left - c.right),
		y: (v) =>
			c.height -
			c.bottom -
			((within(v, y0, y1) - y0) / (y1 - y0)) * (c.height - c.top - c.bottom),
	};
}

function roofGrid(picture, a, width) {
	for (let e = a.x0; e <= a.x1; e++)
		picture.append(
			svg("line", {
				class: "grid",
				x1: a.x(10 ** e),
				x2: a.x(10 ** e),
				y1: ROOF.top,
				y2: ROOF.height - ROOF.bottom,
			}),
			svg(
				"text",
				{
					x: a.x(10 ** e),
					y: ROOF.height - ROOF.bottom + 16,
					"text-anchor": "middle",
				},
				e < 0 ? (10 ** e).toFixed(-e) : count(10 ** e),
			),
		);
	for (let e = a.y0; e <= a.y1; e++)
		picture.append(
			svg("line", {
				class: "grid",
				x1: ROOF.left,
				x2: width - ROOF.right,
				y1: a.y(10 ** e),
				y2: a.y(10 ** e),
			}),
			svg(
				"text",
				{ x: ROOF.left - 8, y: a.y(10 ** e) + 4, "text-anchor": "end" },
				rateOfFlops(10 ** e).replace(/\.0+ /, " "),
			),
		);
	picture.append(
		svg(
			"text",
			{
				x: (ROOF.left + width - ROOF.right) / 2,
				y: ROOF.height - 8,
				"text-anchor": "middle",
			},
			"FLOPs for each byte of device memory",
		),
	);
}

function roofLines(picture, a, peaks, memory, width) {
	const highest = Math.max(...peaks.map(([, v]) => v)),
		first = Math.max(10 ** a.x0, 10 ** a.y0 / memory);
	picture.append(
		svg("path", {
			class: "roof",
			d: `M${a.x(first)},${a.y(first * memory)}L${a.x(highest / memory)},${a.y(highest)}`,
		}),
	);
	const mid = Math.sqrt((first * highest) / memory),
		slope =
			(Math.atan2(
				a.y(mid * 10 * memory) - a.y(mid * memory),
				a.x(mid * 10) - a.x(mid),
			) *
				180) /
			Math.PI;
	picture.append(
		svg(
			"text",
			{
				transform: `translate(${a.x(mid)},${a.y(mid * memory) - 7}) rotate(${slope})`,
				"text-anchor": "middle",
			},
			`memory ${rateOfBytes(memory)}`,
		),
	);
	for (const [unit, peak] of peaks)
		picture.append(
			svg("path", {
				class: "roof",
				d: `M${a.x(peak / memory)},${a.y(peak)}H${width - ROOF.right}`,
			}),
			svg(
				"text",
				{
					x: width - ROOF.right - 4,
					y: a.y(peak) - 6,
					"text-anchor": "end",
				},
				`${unitText[unit] || unit} ${rateOfFlops(peak)}`,
			),
		);
}

function roofFacts(p) {
	const k = p.kernel;
	return [
		["bound by", k.class ? boundText(k.class, k) : ""],
		["does", rateOfFlops(p.y)],
		["FLOPs a byte", three(p.x)],
		["of the compute ceiling", k.flops_share ? percent(k.flops_share, 1) : ""],
		["of the memory ceiling", k.bytes_share ? percent(k.bytes_share, 1) : ""],
		["unit", k.unit ? unitText[k.unit] || k.unit : ""],
		["time", time(p.time)],
		["runs", count(k.count)],
	];
}

function roofPoint(p, a, all) {
	const radius = 4 + 26 * Math.sqrt(p.time / all),
		beyond = a.beyond(p);
	const at = (e) => showTip(e.clientX, e.clientY, p.kernel.name, roofFacts(p));
	const point = svg("circle", {
		class: beyond ? "point beyond" : "point",
		cx: a.x(p.x),
		cy: a.y(p.y),
		r: radius,
		tabindex: 0,
		role: "img",
		"aria-label": `${shorten(p.kernel.name)}: ${roofFacts(p)
			.filter((f) => f[1])
			.map((f) => f.join(" "))
			.join(", ")}`,
		pointermove: at,
		pointerleave: hideTip,
		blur: hideTip,
		click: () => putSearch(p.kernel.name),
		focus: () => {
			const b = point.getBoundingClientRect();
			showTip(b.right, b.bottom, p.kernel.name, roofFacts(p));
		},
	});
	point.style.fill = kernelColour(p.kernel.name);
	p.element = point;
	return point;
}

function drawRoof(points, peaks, width) {
	const memory = report.gpu.dram_bytes_per_second,
		a = roofAxes(points, peaks, memory, width);
	const all = points.reduce((sum, p) => sum + p.time, 0);
	const picture = svg("svg", {
		class: "chart",
		viewBox: `0 0 ${width} ${ROOF.height}`,
		height: ROOF.height,
		role: "group",
		"aria-label": "Roofline",
	});
	roofGrid(picture, a, width);
	roofLines(picture, a, peaks, memory, width);
	picture.append(...points.map((p) => roofPoint(p, a, all)));
	return picture;
}

/* Ceilings of the units that some kernel uses. */
function roofPeaks(points) {
	const used = new Set(points.map((p) => p.kernel.unit));
	return Object.entries(report.gpu.flops_per_second).filter(([unit]) => used.has(unit));
}

/* The kernels that take most time, in their colours; and where the lines come from. */
function roofLegend(points) {
	const source = report.gpu.measured
		? `ceilings: what benchmarks reached on a GPU of this kind (${report.gpu.name.replaceAll("*", " ").trim()})`
		: `ceilings: ${report.gpu.source}`;
	return el(
		"div",
		{ class: "legend" },
		...points
			.slice(0, 6)
			.map((p) =>
				el(
					"span",
					{ title: p.kernel.name },
					paint(el("i"), () => kernelColour(p.kernel.name)),
					shorten(p.kernel.name),
				),
			),
		el("span", { class: "push" }, source),
	);
}

function rooflineSection() {
	if (report.gpu === undefined) return null;
	const points = report.gpu ? roofPoints() : [],
		peaks = points.length ? roofPeaks(points) : [];
	if (!report.gpu)
		return section(
			"roofline",
			"Roofline",
			null,
			empty(
				report.totals.sampled
					? "Sampled times include the device's wait for the launch, so they say little about speed."
					: "The trace does not name the device, or its peaks are unknown, so there is no ceiling to compare with.",
			),
		);
	if (!peaks.length)
		return section(
			"roofline",
			"Roofline",
			null,
			empty(
				"FLOPs and bytes come from the shapes of operators, and this trace has no known shapes. ",
				el("code", {}, "torch.profiler"),
				" records them with ",
				el("code", {}, "record_shapes=True"),
				".",
			),
		);
	const holder = el("div"),
		name = (report.devices.length && report.devices[0].name) || report.gpu.name;
	const s = section(
		"roofline",
		"Roofline",
		`${count(points.length)} kernels whose FLOPs and bytes are known and that took over 0.1 % of the time, on ${name}. Larger means more time`,
		el(
			"div",
			{ class: "panel" },
			el("div", { class: "chartbox" }, holder),
			roofLegend(points),
		),
	);
	const draw = (width) => holder.replaceChildren(drawRoof(points, peaks, width));
	const { beyond } = roofAxes(points, peaks, report.gpu.dram_bytes_per_second, 1000),
		far = points.filter(beyond).length;
	if (far)
		s.append(
			el(
				"p",
				{ class: "note" },
				`${count(far)} of them ${far === 1 ? "lies" : "lie"} far outside, on the edge with a dashed outline: the numbers under the pointer are true.`,
			),
		);
	watchWidth(holder, draw);
	painted.push(() => draw(holder.clientWidth));
	search.listeners.push(() =>
		points.forEach(
			(p) =>
				p.element &&
				p.element.classList.toggle(
					"off",
					Boolean(search.query) && !matchesText(p.kernel.name),
				),
		),
	);
	return s;
}
