/* The timeline under somebody's hands: choosing, keys, wheel, fingers; and its section. */
"use strict";

function jump(pick) {
	return el(
		"button",
		{ class: "link code", type: "button", click: () => choose(pick, true) },
		shorten(nameOf(pick)),
	);
}

function waited(pick, call) {
	const work = pick.lane.rows[pick.row].start[pick.i],
		row = call.lane.rows[call.row];
	return work > row.start[call.i] ? time(work - row.start[call.i]) : "";
}

function chosenRows(pick) {
	const others = linked(pick),
		rows = [];
	const call = onDevice(pick.lane) ? others[0] : pick;
	if (onDevice(pick.lane) && call)
		rows.push(
			["launched by", jump(call)],
			["began after the call by", waited(pick, call)],
		);
	if (!onDevice(pick.lane) && others.length)
		rows.push([
			others.length > 1
				? `launched ${count(others.length)} GPU activities`
				: "launched",
			el(
				"span",
				{},
				...others
					.slice(0, 12)
					.flatMap((o, i) => (i ? [", ", jump(o)] : [jump(o)])),
			),
		]);
	const around = call
		? rangesAround(call).filter((p) => p.lane !== pick.lane || p.row < pick.row)
		: [];
	if (around.length)
		rows.push([
			"within",
			el(
				"span",
				{},
				...around.flatMap((o, i) => (i ? [" › ", jump(o)] : [jump(o)])),
			),
		]);
	return rows;
}

function bandFacts(band) {
	return [
		["events", count(band.events)],
		["from", moment(band.from - band.pick.lane.side.shift)],
		["over", time(band.to - band.from)],
		["in", band.pick.lane.title],
	];
}

/* For many short events: how many of which, and the way in. */
async function showBand(band) {
	const closer = closerPage(band),
		which = el("div");
	view.panel.replaceChildren(
		el("div", { class: "name" }, `${count(band.events)} short events`),
		facts(bandFacts(band)),
		which,
		el(
			"div",
			{},
			closer && band.to - band.from > (view.to - view.from) / 2
				? null
				: el(
						"button",
						{ class: "small", type: "button", id: "enter", click: () => enterBand(band) },
						"open it (Enter)",
					),
			closer ? el("span", { class: "note" }, " single events are in ") : null,
			closer ? el("code", {}, closer) : null,
		),
	);
	which.replaceChildren(facts(nameRows(await namesIn(band))));
}

function choose(pick, go) {
	view.chosen = pick;
	view.panel.hidden = !pick;
	if (!pick) return queueDraw();
	if (go) bringIntoView(pick);
	const band = bandOf(pick);
	if (band) {
		showBand(band);
		return queueDraw();
	}
	const text = detailOf(pick.lane.rows[pick.row], pick.i).text;
	const isCall = pick.lane.kind === "calls" && text !== undefined;
	view.panel.replaceChildren(
		el("div", { class: "name" }, nameOf(pick)),
		facts(itemFacts(pick)),
		isCall ? el("div", { class: "code" }, names[text]) : facts(argumentFacts(pick)),
		facts(chosenRows(pick)),
	);
	queueDraw();
}

function bringIntoView(pick) {
	const row = pick.lane.rows[pick.row],
		length = row.end[pick.i] - row.start[pick.i];
	const middle = (row.start[pick.i] + row.end[pick.i]) / 2,
		span = view.to - view.from;
	if (pick.lane.group.folded || (pick.lane.folded && pick.row > 0)) {
		pick.lane.group.folded = false;
		pick.lane.folded = pick.lane.folded && pick.row === 0;
		layOut();
	}
	if (row.start[pick.i] < view.from || row.end[pick.i] > view.to || length < span / 400) {
		const wide = Math.max(length * 8, Math.min(span, length * 400));
		look(middle - wide / 2, middle + wide / 2);
	}
	const y = pick.lane.y + HEAD + pick.row * ROW,
		s = view.scroller;
	if (y < s.scrollTop || y > s.scrollTop + s.clientHeight - AXIS - 2 * ROW)
		s.scrollTop = Math.max(0, y - s.clientHeight / 2);
}

/* The next item of the row, or of those that are searched for: +1 or -1. */
function chooseNext(step) {
	const at = view.chosen;
	if (!at) return chooseFirst();
	const i = at.i + step;
	if (i >= 0 && i < at.lane.rows[at.row].n) choose({ ...at, i }, true);
}

function chooseFirst() {
	const t = (view.from + view.to) / 2;
	for (const lane of view.lanes)
		for (let k = 0; k < lane.rows.length; k++)
			if (lane.rows[k].n)
				return choose(
					{
						lane,
						row: k,
						i: Math.min(
							firstAfter(lane.rows[k], t),
							lane.rows[k].n - 1,
						),
					},
					true,
				);
}

/* The match after (or before) the chosen item's start, or the middle of the view. */
function chooseMatch(step) {
	if (!search.matches) return;
	const at = view.chosen;
	const t = at ? at.lane.rows[at.row].start[at.i] : step > 0 ? -1 : Infinity;
	let best = null,
		bestStart = step > 0 ? Infinity : -Infinity;
	for (const lane of view.lanes)
		lane.rows.forEach((row, k) => {
			const i = matchIn(row, t, step);
			if (i >= 0 && (row.start[i] - bestStart) * step < 0) {
				best = { lane, row: k, i };
				bestStart = row.start[i];
			}
		});
	if (best) choose(best, true);
}

function matchIn(row, t, step) {
	for (let i = step > 0 ? 0 : row.n - 1; i >= 0 && i < row.n; i += step)
		if ((row.start[i] - t) * step > 0 && !isDimmed(row, i)) return i;
	return -1;
}

/* A length of time that somebody drew: what happened in it. */
function measure() {
	const [a, b] = [Math.min(...view.span), Math.max(...view.span)];
	const lines = view.lanes
		.filter((l) => l.kind === "stream" || l.kind === "calls")
		.map((lane) => {
			let events = 0,
				busy = 0;
			for (const row of lane.kind === "calls" ? lane.rows.slice(0, 1) : lane.rows)
				for (
					let i = firstAfter(row, a);
					i < row.n && row.start[i] < b;
					i++
				) {
					const share =
						(Math.min(b, row.end[i]) -
							Math.max(a, row.start[i])) /
						Math.max(1, row.end[i] - row.start[i]);
					events += row.count[i];
					busy += row.busy[i] * share;
				}
			return events
				? [
						lane.title,
						`${count(events)} ${lane.kind === "calls" ? "calls" : "GPU activities"}, ${percent(busy, b - a)} busy`,
					]
				: null;
		});
	view.panel.hidden = false;
	view.panel.replaceChildren(
		el("div", { class: "name" }, time(b - a)),
		facts([
			["from", moment(a)],
			["to", moment(b)],
		]),
		facts(lines),
	);
}

const timelineKeys = {
	a: () => pan(-0.2),
	d: () => pan(0.2),
	ArrowLeft: () => pan(-0.2),
	ArrowRight: () => pan(0.2),
	w: () => zoom(0.6),
	s: () => zoom(1 / 0.6),
	"+": () => zoom(0.6),
	"=": () => zoom(0.6),
	"-": () => zoom(1 / 0.6),
	ArrowUp: () => view.scroller.scrollBy(0, -3 * ROW),
	ArrowDown: () => view.scroller.scrollBy(0, 3 * ROW),
	0: () => look(view.lo, view.hi),
	Home: () => look(view.lo, view.hi),
	".": () => chooseNext(1),
	",": () => chooseNext(-1),
	n: () => chooseMatch(1),
	N: () => chooseMatch(-1),
	f: () => view.chosen && zoomToChosen(),
	g: () => foldGroups(),
	Enter: () => (view.chosen ? enterChosen() : chooseFirst()),
	Escape: () => {
		view.span = null;
		choose(null);
	},
};

function enterOrZoom() {
	const band = bandOf(view.chosen);
	if (band) enterBand(band);
	else zoomToChosen();
}

function zoomToChosen() {
	const row = view.chosen.lane.rows[view.chosen.row],
		i = view.chosen.i;
	const margin = Math.max(row.end[i] - row.start[i], 10);
	look(row.start[i] - margin, row.end[i] + margin);
}

/* All of them, or none when all are. */
function foldGroups() {
	const fold = view.groups.some((g) => !g.folded);
	for (const g of view.groups) g.folded = fold;
	layOut();
}

function enterChosen() {
	const band = bandOf(view.chosen);
	if (band) enterBand(band);
	else followLink();
}

/* From a GPU activity to its call, from a call to its activities. */
function followLink() {
	const other = linked(view.chosen)[0];
	if (other) choose(other, true);
}

function onKey(e) {
	const act = timelineKeys[e.key];
	if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
	e.preventDefault();
	act();
}

/* Without the focus a wheel scrolls the page, as everywhere. */
function onWheel(e) {
	const wanted = e.ctrlKey || e.metaKey || document.activeElement === view.canvas;
	const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
	if (!wanted && !sideways && !e.shiftKey) return;
	e.preventDefault();
	if (sideways || e.shiftKey) return pan((e.deltaX || e.deltaY) / view.width);
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
	if (before > 10 && now > 10) zoom(before / now, (e.offsetX + other.x) / 2);
}

function onMove(e) {
	const last = drag.pointers.get(e.pointerId);
	if (!last) return hover(e);
	drag.moved = drag.moved || Math.hypot(e.offsetX - last.x, e.offsetY - last.y) > 3;
	if (!drag.moved) return;
	if (drag.pointers.size > 1) pinch(e);
	else if (view.span) view.span[1] = timeAt(e.offsetX);
	else {
		pan((last.x - e.offsetX) / view.width);
		if (e.pointerType === "mouse") view.scroller.scrollTop += last.y - e.offsetY;
	}
	drag.pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
	queueDraw();
}

function onUp(e) {
	if (!drag.pointers.delete(e.pointerId)) return;
	if (view.span && drag.moved) return measure();
	view.span = null;
	if (!drag.moved) click(e);
}

function click(e) {
	const lane = laneAt(e.offsetY),
		group = groupAt(e.offsetY);
	if (group) {
		group.folded = !group.folded;
		return layOut();
	}
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
	view.hovered = pick;
	view.canvas.style.cursor = pick || groupAt(e.offsetY) ? "pointer" : "grab";
	if (!pick) return hideTip();
	const band = bandOf(pick);
	if (band) return hoverBand(band, e.clientX, e.clientY);
	const call = onDevice(pick.lane) ? linked(pick)[0] : null;
	const around = call ? rangesAround(call) : [];
	const rows = itemFacts(pick);
	if (around.length) {
		const innermost = around[around.length - 1];
		rows.push(
			["operator", nameOf(innermost)],
			...argumentFacts(innermost, "Input Dims"),
		);
	}
	rows.push(...argumentFacts(pick, "Input Dims"));
	showTip(e.clientX, e.clientY, nameOf(pick), rows);
}

async function hoverBand(band, x, y) {
	const title = `${count(band.events)} short events`;
	showTip(x, y, title, bandFacts(band));
	const found = await namesIn(band);
	if (view.hovered === band.pick)
		showTip(x, y, title, [...nameRows(found), ...bandFacts(band), ["", "a double click opens it"]]);
}

/* In the map: a click moves the view there, a drag keeps moving it. */
function onMapMove(e) {
	if (e.type === "pointerdown") view.map.setPointerCapture(e.pointerId);
	if (!(e.buttons & 1)) return;
	const t = view.lo + (e.offsetX / view.map.clientWidth) * (view.hi - view.lo);
	const half = Math.min((view.to - view.from) / 2, (view.hi - view.lo) * 0.45);
	look(t - half, t + half);
}

function timelineLegend() {
	const kinds = new Set(
		view.lanes.flatMap((l) =>
			l.kind === "stream"
				? ["kernel", "copy", "set"]
				: l.kind === "calls"
					? ["call"]
					: l.kind === "ranges" || l.kind === "requests"
						? ["range"]
						: l.kind === "python"
							? ["python"]
							: l.kind === "spans"
								? ["span"]
								: [],
		),
	);
	return el(
		"div",
		{ class: "legend" },
		...[...kinds].map((k) => {
			const swatch = el("i");
			return el("span", {}, paint(swatch, () => sampleOf(k)), hueText[k]);
		}),
		el("span", { id: "where", class: "push" }),
	);
}

function itemsNote(t) {
	if (!t.bin_ns) return `every one of ${count(t.events)} events`;
	const near = !t.fine_items
		? ""
		: t.fine_bin_ns
			? `, nearby those shorter than ${time(t.fine_bin_ns)}`
			: ". Nearby each is there";
	return `${count(t.events)} events drawn as ${count(t.items)} items, and neighbours shorter than ${time(t.bin_ns)} are merged${near}`;
}

function timelineNote() {
	return sides.map((s) => (two ? `${s.letter}: ` : "") + itemsNote(s.timeline)).join(". ");
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
	canvas.addEventListener("dblclick", () => view.chosen && enterOrZoom());
	view.map.addEventListener("pointerdown", onMapMove);
	view.map.addEventListener("pointermove", onMapMove);
	view.scroller.addEventListener("scroll", queueDraw);
	search.listeners.push(queueDraw);
	new ResizeObserver(queueDraw).observe(view.scroller);
}

function button(text, title, act) {
	return el(
		"button",
		{ class: "small", type: "button", title, "aria-label": title, click: act },
		text,
	);
}

function timelineSection() {
	view.lanes = makeLanes();
	view.groups = makeGroups(view.lanes);
	if (!view.lanes.length)
		return section(
			"timeline",
			"Timeline",
			null,
			empty(
				"The trace holds no call, no range and no GPU activity: nothing happened while it was recorded, or the level kept it out (see ",
				el("code", {}, "weir record --level"),
				").",
			),
		);
	extent();
	view.canvas = el("canvas", {
		tabindex: 0,
		role: "application",
		"aria-label":
			"Timeline. Arrow keys or A and D move, W and S zoom, comma and full stop go from one event to the next, Enter follows a launch, F zooms to it, Escape leaves.",
	});
	view.map = el("canvas", { class: "map", "aria-hidden": "true" });
	view.spacer = el("div");
	view.spacer.append(view.canvas);
	view.scroller = el("div", { class: "scroll" }, view.spacer);
	view.panel = el("div", { class: "chosen", "aria-live": "polite", hidden: true });
	const s = section(
		"timeline",
		"Timeline",
		timelineNote(),
		el(
			"div",
			{ class: "panel timeline" },
			view.map,
			view.scroller,
			timelineLegend(),
			view.panel,
		),
	);
	s.firstChild.append(
		el(
			"div",
			{ class: "push" },
			el(
				"span",
				{ class: "note desk" },
				"click it, then scroll to zoom. Shift-drag measures",
			),
			view.groups.length > 1 ? button("fold", "fold all groups, or none (g)", foldGroups) : null,
			button("−", "zoom out", () => zoom(1 / 0.6)),
			button("+", "zoom in", () => zoom(0.6)),
			button("whole", "show all of the time", () => look(view.lo, view.hi)),
		),
	);
	listenTimeline();
	return s;
}
