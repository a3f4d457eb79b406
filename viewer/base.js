/*
 * Every part of the page uses this: the data, elements, numbers for people, colours, the search.
 *
 * Nothing of the trace is ever read as markup: text goes into text nodes, the policy of the page
 * forbids everything else.
 */
"use strict";

/* el("td", { class: "num" }, "12"): an element; a function is a listener, null leaves out. */
function el(tag, props, ...children) {
	const e = document.createElement(tag);
	for (const [key, value] of Object.entries(props || {})) {
		if (value === null || value === undefined || value === false) continue;
		if (typeof value === "function") e.addEventListener(key, value);
		else e.setAttribute(key, value === true ? "" : String(value));
	}
	e.append(...children.filter((c) => c !== null && c !== undefined));
	return e;
}

/* The same for pictures. */
function svg(tag, props, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [key, value] of Object.entries(props || {}))
		if (typeof value === "function") e.addEventListener(key, value);
		else if (value !== null) e.setAttribute(key, String(value));
	e.append(...children);
	return e;
}

const grouped = new Intl.NumberFormat("en-US");

function count(n) {
	return n === null || n === undefined ? "" : grouped.format(n);
}

/* A number half way between two goes to the even one, as in C: the report says the same. */
function fixed(x, digits) {
	const half = (x * 2 ** (digits + 1)) % 2 === 1;
	const up = x.toFixed(digits);
	return half && up.at(-1) % 2 ? (x * (1 - Number.EPSILON)).toFixed(digits) : up;
}

function three(x) {
	return fixed(x, x >= 99.95 ? 0 : x < 9.995 ? 2 : 1);
}

function scaled(value, step, units) {
	const first = value < step;
	let i = 0;
	while (i + 1 < units.length && value >= (i ? 999.5 : step)) {
		value /= step;
		i++;
	}
	return (first ? String(Math.round(value)) : three(value)) + " " + units[i];
}

function time(ns) {
	if (ns === null || ns === undefined) return "";
	if (ns >= 7200e9)
		return (
			count(Math.floor(ns / 3600e9)) +
			" h " +
			Math.floor((ns % 3600e9) / 60e9) +
			" min"
		);
	if (ns >= 120e9)
		return Math.floor(ns / 60e9) + " min " + Math.floor((ns % 60e9) / 1e9) + " s";
	return scaled(ns, 1000, ["ns", "us", "ms", "s"]);
}

/* When something happened: exact enough to find it again. */
function moment(ns) {
	return ns >= 1e9
		? (ns / 1e9).toFixed(6) + " s"
		: ns >= 1e6
			? (ns / 1e6).toFixed(4) + " ms"
			: (ns / 1e3).toFixed(3) + " us";
}

function bytes(n) {
	return n === null || n === undefined
		? ""
		: scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
}

function percent(part, whole) {
	if (!whole) return "";
	const p = (100 * part) / whole;
	return (p >= 99.95 || p === 0 ? p.toFixed(0) : p >= 0.1 ? fixed(p, 1) : "<0.1") + " %";
}

function triple(v) {
	return v && v.length === 3 ? "(" + v.join(",") + ")" : "";
}

/* A time on an axis: so many digits that two marks `step` apart differ. */
function axisTime(ns, step) {
	const [unit, name] =
		step >= 1e9
			? [1e9, "s"]
			: step >= 1e6
				? [1e6, "ms"]
				: step >= 1e3
					? [1e3, "us"]
					: [1, "ns"];
	const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
	return grouped.format(Number((ns / unit).toFixed(digits))) + " " + name;
}

/* Steps of 1, 2 or 5 that cut `span` into at most `most` parts. */
function niceStep(span, most) {
	const raw = span / Math.max(1, most);
	const power = Math.pow(10, Math.floor(Math.log10(raw)));
	return power * [1, 2, 5, 10].find((k) => k * power >= raw * 0.9999);
}

/* Whatever goes wrong is said where the page would be. */
addEventListener("error", (e) => {
	const wait = document.getElementById("wait");
	if (wait) wait.textContent = `This page can't be shown here: ${e.message}`;
});

const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;
const names = data.names;

/* Two recordings in one page: the second's names and details are taken in by the first, so that what is
 * one thing has one number. */
const two = data.other !== undefined;
const sides = two ? [data, data.other] : [data];
const LINKS_OF_B = 2 ** 31;

data.shift = 0; /* what is added to a recording's times */
data.letter = two ? "A" : "";

function takeInOther() {
	const b = data.other,
		at = new Map(names.map((n, i) => [n, i])),
		details = data.timeline.details;
	b.letter = "B";
	b.shift = 0;
	b.nameOf = b.names.map((n) => {
		if (!at.has(n)) at.set(n, names.push(n) - 1);
		return at.get(n);
	});
	b.firstDetail = details.length;
	for (const d of b.timeline.details) {
		for (const key of ["kernel", "text", "error"])
			if (d[key] !== undefined) d[key] = b.nameOf[d[key]];
		details.push(d);
	}
}

if (two) takeInOther();

function bytesOf(base64) {
	const text = atob(base64),
		b = new Uint8Array(text.length);
	for (let i = 0; i < b.length; i++) b[i] = text.charCodeAt(i);
	return b;
}

/* Reads varints one after the other. */
class Varints {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	get more() {
		return this.at < this.bytes.length;
	}

	/* Numbers beyond 2^53 lose their last digits, no more. */
	next() {
		let value = 0,
			scale = 1;
		for (;;) {
			const b = this.bytes[this.at++];
			if (!(b & 0x80)) return value + (b || 0) * scale;
			value += (b & 0x7f) * scale;
			scale *= 128;
		}
	}

	/* Signed: zigzag. */
	difference() {
		const z = this.next();
		return z % 2 ? -(z + 1) / 2 : z / 2;
	}
}

/* A kernel's name without result, parameters and template arguments: what a small box can show.
 * "void at::native::reduce<8, f(int)>(at::T)" is "reduce". */
function shorten(name) {
	if (!/[<(]/.test(name)) return name;
	const text = name.replaceAll("(anonymous namespace)::", "").replace(/^void /, "");
	let depth = 0,
		out = "";
	for (const c of text) {
		if (c === "(" && depth === 0 && out) break;
		if (c === "<" || c === "(") depth++;
		else if ((c === ">" || c === ")") && depth > 0) depth--;
		else if (depth === 0) out += c;
	}
	return out.trim().split("::").pop() || name;
}

/* With its template arguments: what distinguishes two rows of a table. */
function readable(name) {
	const text = name.replaceAll("(anonymous namespace)::", "").replace(/^void /, "");
	return text.replace(/\((?!anonymous)[^()<>]*(<.*>)?[^()]*\)$/, "") || name;
}

const shortened = new Map();

function shortName(index) {
	if (!shortened.has(index)) shortened.set(index, shorten(names[index] || "?"));
	return shortened.get(index);
}

/* As the system is, until somebody chooses the other; choosing the system's again follows it again. */
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function chosenTheme() {
	try {
		return localStorage.getItem("weir-theme");
	} catch {
		return null; /* a page from a file may not remember anything, in some browsers */
	}
}

const isDark = () => document.documentElement.dataset.theme === "dark";
const systemTheme = () => (systemDark.matches ? "dark" : "light");

function putTheme(theme) {
	document.documentElement.dataset.theme = theme;
}

function keepTheme(theme) {
	try {
		if (theme === systemTheme()) localStorage.removeItem("weir-theme");
		else localStorage.setItem("weir-theme", theme);
	} catch {
		/* then it holds until the page is closed */
	}
	putTheme(theme);
}

putTheme(chosenTheme() || systemTheme());

/* One palette for all pictures, also those that are written as SVG: api/palette.tbl.  Hue says the kind;
 * of kernels, which are what most pictures are about, it also says which: they have blue, purple and
 * rose to themselves, and each the same colour in all views and pages. */

const hueText = {
	kernel: "kernels, each in a colour of its own",
	copy: "memcpy",
	set: "memset",
	call: "CUDA call",
	range: "operator or range",
	python: "Python",
	span: "annotation on the device",
};

function hash(text) {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return (h ^ (h >>> 15)) >>> 0;
}

/* WCAG's relative luminance. */
function luminance(hue, saturation, light) {
	const a = saturation * Math.min(light, 1 - light);
	const linear = (n) => {
		const k = (n + hue / 30) % 12;
		const v = light - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
		return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * linear(0) + 0.7152 * linear(8) + 0.0722 * linear(4);
}

/* A fill as light as a grey of `light` percent, whatever its hue: a purple of the same lightness in HSL
 * is much darker than a yellow.  Text on it is dark, so on a dark paper fills are bright too. */
function fillOf(hue, saturation, light) {
	const part = (isDark() ? 0.82 : 1) * (saturation / 100),
		want = (light / 100) ** 2.2 * (isDark() ? 0.66 : 1);
	let low = 0,
		high = 1;
	for (let i = 0; i < 12; i++) {
		const middle = (low + high) / 2;
		if (luminance(hue, part, middle) < want) low = middle;
		else high = middle;
	}
	return `hsl(${hue.toFixed(1)} ${(part * 100).toFixed(1)}% ${(high * 100).toFixed(1)}%)`;
}

/* `shade` from 0 to 1. */
function colourOf(kind, shade) {
	const [hue, saturation, level] = hues[kind] || hues.other;
	return fillOf(hue + (shade - 0.5) * 12, saturation, level + 16 * shade);
}

const MIDDLE = 4 / 7; /* the shade of a kind as such */
const shadeOf = (name) => (hash(name) % SHADES) / (SHADES - 1);

/* The place of a kernel's colour in the palette: where the hash of its name says, or, when one that
 * takes more time has that, at the next free place. */
const kernelPlace = new Map();

function placeKernels(kernels) {
	const taken = new Set(kernelPlace.values());
	for (const { name } of kernels) {
		if (kernelPlace.has(name)) continue;
		let at = hash(name) % kernelFills.length;
		for (let i = 0; i < kernelFills.length && taken.has(at); i++)
			at = (at + 1) % kernelFills.length;
		taken.add(at);
		kernelPlace.set(name, at);
	}
}

const byTime = (kernels) =>
	[...kernels].sort((a, b) => (b.device_total_ns || 0) - (a.device_total_ns || 0));

function kernelColour(name) {
	const at = kernelPlace.has(name) ? kernelPlace.get(name) : hash(name) % kernelFills.length;
	return fillOf(...kernelFills[at]);
}

/* For a legend: of a kind whose members have several colours, some of them. */
function sampleOf(kind) {
	if (kind !== "kernel") return colourOf(kind, MIDDLE);
	const three = [0, 4, 1].map((i) => fillOf(...kernelFills[i]));
	return `linear-gradient(90deg, ${three[0]} 33%, ${three[1]} 33% 67%, ${three[2]} 67%)`;
}

let colours = new Map();

function colour(kind, index) {
	const key = kind + index;
	if (!colours.has(key)) {
		const name = names[index] || "";
		colours.set(
			key,
			kind === "kernel"
				? kernelColour(name)
				: colourOf(kind, shadeOf(name)),
		);
	}
	return colours.get(key);
}

/* Elements that are painted anew when the paper turns dark or light. */
const painted = [];

function paint(element, of) {
	element.style.background = of();
	painted.push(() => (element.style.background = of()));
	return element;
}

/* The style sheet's values for a canvas. */
let theme = {};

function readTheme() {
	const style = getComputedStyle(document.documentElement);
	for (const key of [
		"paper",
		"panel",
		"sunk",
		"line",
		"ink",
		"soft",
		"faint",
		"accent",
		"mark",
	])
		theme[key] = style.getPropertyValue("--" + key).trim();
	theme.mono = style.getPropertyValue("--mono").trim();
	theme.sans = style.getPropertyValue("--sans").trim();
	theme.letter = 0;
	theme.onFill = "#14181c";
	theme.faintest = isDark() ? 0.75 : 0.4; /* of what was busy for a part of a pixel */
	colours = new Map();
}

const search = { query: "", matches: null, listeners: [] };

function matchesText(text) {
	return text.toLowerCase().includes(search.query);
}

/* Every view hears of it; `matches` is 1 for each name that is looked for, or null. */
function setSearch(query) {
	search.query = query.trim().toLowerCase();
	search.matches = search.query
		? Uint8Array.from(names, (n) => (matchesText(n) ? 1 : 0))
		: null;
	for (const listener of search.listeners) listener();
}

const tip = el("div", { id: "tip", role: "tooltip" });

function facts(rows) {
	return el(
		"dl",
		{ class: "facts" },
		...rows
			.filter((r) => r && r[1] !== "" && r[1] !== null && r[1] !== undefined)
			.map(([key, value]) =>
				el("div", {}, el("dt", {}, key), el("dd", {}, value)),
			),
	);
}

function showTip(x, y, name, rows) {
	tip.replaceChildren(el("div", { class: "name" }, name), facts(rows));
	const box = tip.getBoundingClientRect();
	const left = x + 14 + box.width > innerWidth ? x - box.width - 12 : x + 14;
	const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
	tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
	tip.style.visibility = "visible";
}

function hideTip() {
	tip.style.visibility = "hidden";
}

const sections = [];
const shortTitles = {
	time: "Time",
	flame: "Flame",
	operators: "Operators",
	calls: "Calls",
	copies: "Copies",
	failures: "Failures",
};

/* A part of the page; `body` is shown, or a sentence why there is nothing to show. */
function section(id, title, note, ...body) {
	const short = shortTitles[id] || title;
	const head = el(
		"div",
		{ class: "top" },
		el("h2", {}, title),
		note ? el("span", { class: "note" }, note) : null,
	);
	const s = el("section", { id, class: "wide", "aria-label": title }, head, ...body);
	sections.push({ id, title: short, element: s });
	return s;
}

function empty(...text) {
	return el("div", { class: "panel" }, el("p", { class: "empty" }, ...text));
}

/* Sets up a canvas for the device's pixels; returns its context and size in CSS pixels. */
function fitCanvas(canvas, width, height) {
	const ratio = Math.min(3, devicePixelRatio || 1);
	const w = Math.round(width * ratio),
		h = Math.round(height * ratio);
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.height = height + "px";
	}
	const c = canvas.getContext("2d");
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	return c;
}

/* As much of a text as fits into a box of that width; the font is one of equal letters. */
function putLabel(c, text, x, y, width) {
	theme.letter = theme.letter || c.measureText("m").width;
	const room = Math.floor((width - 7) / theme.letter);
	if (room < 3) return;
	c.fillStyle = theme.onFill;
	c.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, x + 4, y);
}
