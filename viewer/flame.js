/*
 * The flame graph: time added up by stack, from the process at the top to the kernel at the bottom.
 * Frames come in the order in which they are drawn, children below their parent, largest first.
 */
"use strict";

const FRAME = 19;
const frameKinds = ["frame", "frame", "frame", "range", "call", "call", "kernel", "copy", "other"];
const frameKindText = [
	"everything",
	"process",
	"thread",
	"range",
	"runtime call",
	"driver call",
	"kernel",
	"memcpy or memset",
	"other",
];

const flame = {
	by: null,
	graphs: {},
	root: 0,
	focus: 0,
	canvas: null,
	scroller: null,
	spacer: null,
	path: null,
	width: 0,
};

function decodeFlame(f, side) {
	const v = new Varints(bytesOf(f.frames));
	const g = {
		depth: [],
		name: [],
		kind: [],
		total: [],
		self: [],
		from: [],
		parent: [],
		leftOut: f.left_out,
	};
	const open = []; /* the frame at each depth, and where its next child begins */
	while (v.more) {
		const i = g.depth.length,
			depth = v.next(),
			around = open[depth - 1];
		g.depth.push(depth);
		const name = v.next();
		g.name.push(side.nameOf ? side.nameOf[name] : name);
		g.kind.push(v.next());
		g.total.push(v.next());
		g.self.push(v.next());
		g.from.push(around ? around.next : 0);
		g.parent.push(around ? around.frame : -1);
		open[depth] = { frame: i, next: g.from[i] };
		if (around) around.next += g.total[i];
	}
	return g;
}

/* The first frame that is not below frame i. */
function endOf(g, i) {
	let end = i + 1;
	while (end < g.depth.length && g.depth[end] > g.depth[i]) end++;
	return end;
}

function flameBox(g, i) {
	const root = flame.root,
		scale = flame.width / Math.max(1, g.total[root]);
	if (g.depth[i] < g.depth[root]) return { x: 0, w: flame.width, y: g.depth[i] * FRAME };
	return {
		x: (g.from[i] - g.from[root]) * scale,
		w: g.total[i] * scale,
		y: g.depth[i] * FRAME,
	};
}

/* Frames that can be seen: those around the root, and those below of at least half a pixel. */
function flameFrames(g) {
	const seen = [],
		least = g.total[flame.root] / Math.max(1, flame.width) / 2;
	for (let i = g.parent[flame.root]; i >= 0; i = g.parent[i]) seen.unshift(i);
	for (let i = flame.root, end = endOf(g, i); i < end; i++)
		if (g.total[i] >= least) seen.push(i);
	return seen;
}

function drawFrame(c, g, i, top) {
	const box = flameBox(g, i),
		y = box.y - top,
		dim = search.matches && !search.matches[g.name[i]];
	if (y < -FRAME || y > c.canvas.height) return;
	c.globalAlpha = dim ? 0.28 : g.depth[i] < g.depth[flame.root] ? 0.55 : 1;
	c.fillStyle = colour(frameKinds[g.kind[i]] || "other", g.name[i]);
	c.fillRect(box.x, y, Math.max(0.6, box.w - (box.w > 3 ? 1 : 0)), FRAME - 1);
	if (search.matches && !dim) {
		c.fillStyle = theme.mark;
		c.fillRect(box.x, y + FRAME - 4, Math.max(1, box.w - 1), 3);
	}
	if (i === flame.focus && document.activeElement === flame.canvas) {
		c.strokeStyle = theme.ink;
		c.lineWidth = 2;
		c.strokeRect(box.x + 1, y + 1, Math.max(2, box.w - 3), FRAME - 3);
	}
	putLabel(c, shortName(g.name[i]), box.x, y + FRAME / 2, box.w);
}

function drawFlame() {
	const g = flame.graphs[flame.by];
	if (!g) return;
	flame.width = Math.max(50, flame.scroller.clientWidth);
	const frames = flameFrames(g);
	const deep = frames.reduce((a, i) => Math.max(a, g.depth[i]), 0);
	const tall = (deep + 1) * FRAME;
	flame.spacer.style.height = tall + "px";
	const height = Math.min(tall, flame.scroller.clientHeight || 300);
	const c = fitCanvas(flame.canvas, flame.width, height);
	c.clearRect(0, 0, flame.width, height);
	c.font = "11px " + theme.mono;
	c.textBaseline = "middle";
	for (const i of frames) drawFrame(c, g, i, flame.scroller.scrollTop);
	c.globalAlpha = 1;
	putFlamePath(g);
}

/* The place in the graph, and its share of the time. */
function putFlamePath(g) {
	const at = flame.focus,
		parts = [];
	for (let i = at; i >= 0; i = g.parent[i]) parts.unshift(shortName(g.name[i]));
	const less = g.leftOut ? `. ${count(g.leftOut)} smaller frames are left out` : "";
	flame.path.textContent = `${time(g.total[at])}, ${percent(g.total[at], g.total[0])} of all: ${parts.join(" › ")}${less}`;
}

function flameAt(x, y) {
	const g = flame.graphs[flame.by],
		depth = Math.floor((y + flame.scroller.scrollTop) / FRAME);
	return flameFrames(g).find((i) => {
		const box = flameBox(g, i);
		return g.depth[i] === depth && x >= box.x && x < Math.max(box.x + box.w, box.x + 1);
	});
}

function zoomFlame(i) {
	flame.root = flame.focus = i;
	drawFlame();
}

function hoverFlame(e) {
	const i = flameAt(e.offsetX, e.offsetY),
		g = flame.graphs[flame.by];
	flame.canvas.style.cursor = i === undefined ? "default" : "pointer";
	if (i === undefined) return hideTip();
	const around = g.parent[i] >= 0 ? g.parent[i] : i;
	showTip(e.clientX, e.clientY, names[g.name[i]], [
		["", frameKindText[g.kind[i]]],
		["total", time(g.total[i])],
		["itself", g.self[i] ? time(g.self[i]) : ""],
		["of all", percent(g.total[i], g.total[0])],
		["of the frame above", around !== i ? percent(g.total[i], g.total[around]) : ""],
	]);
}

/* To the frame beside: the next that has the same parent. */
function beside(g, step) {
	for (
		let i = flame.focus + step;
		i > g.parent[flame.focus] && i < g.depth.length;
		i += step
	) {
		if (g.depth[i] < g.depth[flame.focus]) return flame.focus;
		if (g.parent[i] === g.parent[flame.focus]) return i;
	}
	return flame.focus;
}

function keyFlame(e) {
	const g = flame.graphs[flame.by],
		at = flame.focus;
	const moves = {
		ArrowDown: () => (g.depth[at + 1] > g.depth[at] ? at + 1 : at),
		ArrowUp: () => Math.max(0, g.parent[at]),
		ArrowRight: () => beside(g, 1),
		ArrowLeft: () => beside(g, -1),
		Home: () => 0,
	};
	if (
		e.ctrlKey ||
		e.metaKey ||
		e.altKey ||
		!(moves[e.key] || ["Enter", "Escape", "0"].includes(e.key))
	)
		return;
	e.preventDefault();
	if (e.key === "Enter") return zoomFlame(at);
	if (e.key === "Escape" || e.key === "0") return zoomFlame(0);
	flame.focus = moves[e.key]();
	const y = g.depth[flame.focus] * FRAME,
		s = flame.scroller;
	if (y < s.scrollTop || y + FRAME > s.scrollTop + s.clientHeight)
		s.scrollTop = y - s.clientHeight / 2;
	drawFlame();
}

/* Graphs are called device and host; of two recordings Adevice, Ahost and so on. */
function graphOf(by) {
	const side = sides.find((s) => by.startsWith(s.letter) && s.flame[by.slice(s.letter.length)]);
	return decodeFlame(side.flame[by.slice(side.letter.length)], side);
}

function setFlame(by) {
	flame.by = by;
	if (!flame.graphs[by]) flame.graphs[by] = graphOf(by);
	for (const b of document.querySelectorAll("[data-flame]"))
		b.setAttribute("aria-pressed", String(b.dataset.flame === by));
	zoomFlame(0);
}

function flameChoice(side, kind, text) {
	const by = side.letter + kind;
	return side.flame[kind]
		? el(
				"button",
				{
					class: "small",
					type: "button",
					"data-flame": by,
					"aria-pressed": "false",
					click: () => setFlame(by),
				},
				two ? `${side.letter}: ${text}` : text,
			)
		: null;
}

function flameSection() {
	const kinds = ["device", "host"].flatMap((kind) => sides.map((s) => s.flame[kind] && s.letter + kind));
	const by = kinds.find(Boolean);
	if (!by)
		return section(
			"flame",
			"Flame graph",
			null,
			empty(
				"There is no time to add up: the trace has neither timed calls nor GPU activities.",
			),
		);
	flame.canvas = el("canvas", {
		tabindex: 0,
		role: "application",
		"aria-label":
			"Flame graph. Arrow keys move between frames, Enter zooms, Escape shows all.",
	});
	flame.spacer = el("div", {}, flame.canvas);
	flame.scroller = el("div", { class: "scroll" }, flame.spacer);
	flame.path = el("span", { "aria-live": "polite" });
	const s = section(
		"flame",
		"Flame graph",
		"a click zooms, Escape shows all",
		el(
			"div",
			{ class: "panel" },
			flame.scroller,
			el("div", { class: "legend" }, flame.path),
		),
	);
	s.firstChild.append(
		el(
			"div",
			{ class: "push" },
			...sides.map((s) =>
				flameChoice(
					s,
					"device",
					s.report.totals.sampled ? "time on devices, estimated" : "time on devices",
				),
			),
			...sides.map((s) => flameChoice(s, "host", "time in calls")),
		),
	);
	if (!sides.some((s) => s.flame.device))
		s.append(
			el(
				"p",
				{ class: "note" },
				"Times are those of calls on the host: the trace has no GPU activities. ",
				el("code", {}, "weir record --gpu"),
				" records when they ran.",
			),
		);
	flame.canvas.addEventListener("click", (e) => {
		const i = flameAt(e.offsetX, e.offsetY);
		if (i !== undefined) zoomFlame(i);
	});
	flame.canvas.addEventListener("pointermove", hoverFlame);
	flame.canvas.addEventListener("pointerleave", hideTip);
	flame.canvas.addEventListener("keydown", keyFlame);
	flame.canvas.addEventListener("focus", drawFlame);
	flame.canvas.addEventListener("blur", drawFlame);
	flame.scroller.addEventListener("scroll", drawFlame);
	search.listeners.push(drawFlame);
	new ResizeObserver(drawFlame).observe(flame.scroller);
	flame.by = by;
	flame.graphs[by] = graphOf(by);
	return s;
}
