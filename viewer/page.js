/* The page: what stands where, the search, the keys. */
"use strict";

function tile(label, value, small, bad) {
	return value === ""
		? null
		: el(
				"div",
				{ class: bad ? "tile bad" : "tile" },
				el("dt", {}, label),
				el("dd", {}, value, small ? el("small", {}, small) : null),
			);
}

function deviceTiles() {
	return report.devices
		.slice(0, 4)
		.map((d) =>
			tile(
				`GPU ${d.device} busy`,
				percent(d.busy_ns, report.totals.wall_ns) || time(d.busy_ns),
				`${time(d.busy_ns)}${d.name ? " on " + d.name : ""}`,
			),
		);
}

/* The time of all threads together; calls inside of calls count once. */
function timeInCalls() {
	const frames = data.flame.host && decodeFlame(data.flame.host, data);
	return frames ? `${time(frames.total[0])} in them` : null;
}

function tiles() {
	const t = report.totals,
		m = report.memory;
	const kernels = t.sampled ? t.launches : t.device_kernels || t.launches;
	return el(
		"dl",
		{ class: "tiles" },
		tile(
			"wall time",
			time(t.wall_ns),
			report.trace.clock_known ? null : "the clock's rate is not known",
		),
		t.sampled
			? tile(
					"GPU, estimated",
					`at most ${time(t.device_total_most_ns)}`,
					`${t.device_total_least_ns === null ? "" : `at least ${time(t.device_total_least_ns)}, `}95 % confidence; one launch in ${count(t.sampled)} was timed`,
				)
			: null,
		...deviceTiles(),
		tile(
			"kernels run",
			count(kernels),
			report.kernels.length > 1
				? `${count(report.kernels.length)} different ones`
				: null,
		),
		tile("CUDA calls", count(t.calls), timeInCalls()),
		tile(
			"peak memory",
			m.peak_bytes ? bytes(m.peak_bytes) : "",
			m.live_at_exit_bytes ? `${bytes(m.live_at_exit_bytes)} at the end` : null,
		),
		tile(
			"failing calls",
			t.errors ? count(t.errors - t.probes) : "",
			[report.failures.find((f) => !f.probe)?.error, t.probes ? `${count(t.probes)} probes` : ""].filter(Boolean).join(" · "),
			t.errors > t.probes,
		),
		tile("calls lost", t.lost ? count(t.lost) : "", "they found no room", true),
		tile(
			"threads",
			t.threads > 1 ? count(t.threads) : "",
			t.processes > 1 ? `in ${count(t.processes)} processes` : null,
		),
	);
}

function pageHead() {
	const t = report.trace,
		program = t.program || "a trace without the name of a program";
	document.title = `${program.slice(0, 80)} · weir`;
	const when =
		t.start_realtime_ns > 1e18
			? new Date(t.start_realtime_ns / 1e6).toLocaleString()
			: "";
	const bits = [
		t.host ? `on ${t.host}` : "",
		when,
		t.finished
			? t.exit_signal
				? `killed by signal ${t.exit_signal}`
				: t.exit_status
					? `ended with status ${t.exit_status}`
					: ""
			: "the recording was not finished",
		t.part ? `only a part of the recording${t.part.how ? `: ${t.part.how}` : ""}` : "",
	];
	const p = report.provenance,
		mhz = (khz) => (khz ? ` at up to ${Math.floor(khz / 1000)} MHz` : ""),
		named = (name, value) => (value ? `${name} ${value}` : "");
	const made = [
		...p.devices.map((d) => `${d.name}${d.sms === null ? "" : `, ${d.sms} SMs${mhz(d.clock_khz)}`}`),
		named("driver", p.driver),
		named("CUDA", p.cuda),
		named("PyTorch", p.torch),
		named("Python", p.python),
		named("Weir", p.weir),
		named("level", p.level),
	];
	return el(
		"header",
		{ class: "wide" },
		el("div", { class: "brand" }, "weir"),
		el("h1", {}, program),
		el("p", { class: "sub" }, ...bits.filter(Boolean).map((b) => el("span", {}, b))),
		el("p", { class: "sub made" }, ...made.filter(Boolean).map((b) => el("span", {}, b))),
		...report.summary.map((sentence) => el("p", { class: "summary" }, sentence)),
	);
}

function overviewSection() {
	const s = section("overview", "Overview", null, tiles());
	s.classList.add("first");
	if (report.totals.sampled)
		s.append(
			el(
				"p",
				{ class: "note" },
				`One launch in ${count(report.totals.sampled)} was timed, with events around it. Times on the GPU are upper bounds, since they include its wait for the launch. Totals are estimates without memcpys and memsets. The timeline shows only those launches, at about their time.`,
			),
		);
	if (report.warnings.length)
		s.append(
			el(
				"ul",
				{ class: "warnings" },
				...report.warnings.map((w) => el("li", {}, w)),
			),
		);
	return s;
}

function hint(h) {
	const gain =
		h.gain_pct > 0
			? el(
					"span",
					{ class: "gain" },
					h.gain_of_step_ns
						? `about ${time(h.gain_of_step_ns)} a step`
						: `about ${time(h.gain_ns)}`,
				)
			: null;
	const sure = h.confidence_word ? `confidence ${h.confidence_word}` : "";
	const rest = h.title
		? [
				el("h3", {}, h.title),
				el("p", {}, h.evidence || ""),
				h.advice ? el("p", { class: "advice" }, h.advice) : null,
			]
		: [el("p", {}, h.text)];
	return el(
		"li",
		{ class: "hint" },
		gain,
		...rest,
		h.where ? el("div", { class: "where" }, h.where) : null,
		el("div", { class: "id" }, [h.id, sure].filter(Boolean).join(" · ")),
	);
}

function hintsSection() {
	const hints = report.hints;
	if (!hints) return null;
	if (!hints.length)
		return section(
			"hints",
			"Hints",
			null,
			report.totals.sampled
				? empty(
						`One launch in ${count(report.totals.sampled)} was timed, and most rules need to know what ran when: `,
						el("code", {}, "weir record --gpu"),
						" records it.",
					)
				: report.hints_of_ns === null
				? empty(
						"Most rules need the times of GPU activities, which this trace does not have: ",
						el("code", {}, "weir record --gpu"),
						" records it. The others found nothing.",
					)
				: empty(
						"No rule found anything worth changing in what this trace shows.",
					),
		);
	return section(
		"hints",
		"Hints",
		`what to try first, by its possible gain in ${report.hints_window ? report.hints_window.what : "memory"}`,
		el("ul", { class: "hints" }, ...hints.map(hint)),
	);
}

function searchBox() {
	const found = el("output", { for: "search" });
	const box = el("input", {
		id: "search",
		type: "search",
		placeholder: "Search all views",
		"aria-label": "Search in all views",
		autocomplete: "off",
		spellcheck: "false",
	});
	let timer = 0;
	box.addEventListener("input", () => {
		clearTimeout(timer);
		timer = setTimeout(() => setSearch(box.value), names.length > 5000 ? 150 : 30);
	});
	box.addEventListener("keydown", (e) => {
		if (e.key === "Escape") putSearch(search.query);
		if (e.key === "Enter" && view.canvas) chooseMatch(e.shiftKey ? -1 : 1);
	});
	search.listeners.push(() => {
		const n = search.matches ? search.matches.reduce((a, b) => a + b, 0) : 0;
		found.textContent = search.matches ? `${count(n)} name${n === 1 ? "" : "s"}` : "";
	});
	return el("div", { class: "find" }, box, found);
}

const keyHelp = [
	["/", "search, and Enter goes to the next match"],
	["W S", "timeline: zoom in and out, also + and −, and the wheel"],
	["A D ← →", "timeline: earlier and later"],
	[", .", "timeline: the event before, the event after"],
	["Enter", "timeline: between launch and kernel, or into many short events. Flame graph: zoom"],
	["G", "timeline: fold all groups, or none"],
	["N n", "timeline: the match before, the next match"],
	["F", "timeline: zoom to the chosen event"],
	["0", "show all of the time"],
	["Shift drag", "timeline: measure a length of time"],
	["↑ ↓ ← →", "flame graph: from frame to frame"],
	["Esc", "leave, unzoom, clear"],
	["T", "light or dark"],
	["?", "this list"],
];

function helpDialog() {
	return el(
		"dialog",
		{ id: "help", "aria-label": "Keys" },
		el("h2", {}, "Keys"),
		el(
			"dl",
			{},
			...keyHelp.flatMap(([k, text]) => [
				el(
					"dt",
					{},
					...k
						.split(" ")
						.flatMap((x, i) =>
							i
								? [" ", el("kbd", {}, x)]
								: [el("kbd", {}, x)],
						),
				),
				el("dd", {}, text),
			]),
		),
		el("form", { method: "dialog" }, el("button", { class: "small" }, "close")),
	);
}

function openHelp() {
	document.getElementById("help").showModal();
}

function turn() {
	keepTheme(isDark() ? "light" : "dark");
	redraw();
}

function themeButton() {
	return el(
		"button",
		{
			id: "theme",
			class: "round",
			type: "button",
			title: "light or dark (t)",
			"aria-label": "Light or dark",
			click: turn,
		},
		"◐",
	);
}

function navBar() {
	return el(
		"nav",
		{ "aria-label": "Parts of the page" },
		el(
			"div",
			{ class: "wide" },
			el(
				"ul",
				{},
				...sections.map((s) =>
					el("li", {}, el("a", { href: "#" + s.id }, s.title)),
				),
			),
			searchBox(),
			themeButton(),
			el(
				"button",
				{
					class: "round desk",
					type: "button",
					title: "keys",
					"aria-label": "Keys",
					click: openHelp,
				},
				"?",
			),
		),
	);
}

/* The link of the part that is being read. */
function followSections() {
	const links = new Map(
		[...document.querySelectorAll("nav li a")].map((a) => [
			a.getAttribute("href").slice(1),
			a,
		]),
	);
	const seen = new Set();
	const watch = new IntersectionObserver(
		(entries) => {
			for (const e of entries)
				e.isIntersecting ? seen.add(e.target.id) : seen.delete(e.target.id);
			const here = sections.find((s) => seen.has(s.id));
			for (const [id, a] of links)
				a.classList.toggle("here", Boolean(here) && here.id === id);
		},
		{ rootMargin: "-70px 0px -55% 0px" },
	);
	for (const s of sections) watch.observe(s.element);
}

function onPageKey(e) {
	const typing = e.target instanceof HTMLInputElement || e.ctrlKey || e.metaKey || e.altKey;
	const act = { "/": () => document.getElementById("search").focus(), "?": openHelp, t: turn }[e.key];
	if (typing || !act) return;
	e.preventDefault();
	act();
}

function redraw() {
	readTheme();
	for (const again of painted) again();
	drawTimelineIfThere();
	drawFlame();
}

function drawTimelineIfThere() {
	if (view.canvas) queueDraw();
}

function partsOfOne() {
	return [
		overviewSection(),
		hintsSection(),
		breakdownSection(),
		timelineSection(),
		flameSection(),
		memorySection(),
		rooflineSection(),
		kernelsSection(),
		operatorsSection(),
		callsSection(),
		copiesSection(),
		failuresSection(),
	];
}

function comparedParts() {
	return [
		comparedSection(),
		comparedBreakdown(),
		timelineSection(),
		flameSection(),
		memorySection(),
		...comparedTables(),
	];
}

function build() {
	placeKernels(byTime(sides.flatMap((s) => s.report.kernels)));
	readTheme();
	const head = two ? comparedHead() : pageHead();
	const parts = (two ? comparedParts() : partsOfOne()).filter(Boolean);
	const foot = el(
		"footer",
		{ class: "wide" },
		"Made by weir html. This page holds all of its data and works without a network. ",
		el("span", { class: "desk" }, "Press ", el("kbd", {}, "?"), " for the keys."),
	);
	document.getElementById("app").replaceChildren(
		head,
		navBar(),
		el("main", {}, ...parts),
		foot,
	);
	document.body.append(tip, helpDialog());
	if (view.canvas) layOut();
	if (flame.by) setFlame(flame.by);
	followSections();
	document.addEventListener("keydown", onPageKey);
	systemDark.addEventListener("change", () => {
		putTheme(chosenTheme() || systemTheme());
		redraw();
	});
	document.addEventListener("DOMContentLoaded", queueCloseLook);
	document.documentElement.dataset.ready = "yes";
}

build();
