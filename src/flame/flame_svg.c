/*
 * Writes a flame graph as one SVG file, root on top and widths by time. A click on a frame widens
 * it, and Escape or a click beside shows all again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/text.h"
#include "flame/flame.h"
#include "palette.h"

#define WIDTH      1200.0
#define EDGE       10.0
#define HEAD       58.0
#define ROW        18.0
#define FOOT       34.0
#define LETTER     6.62 /* of a monospaced font of 11 pixels */
#define LEAST      0.25 /* pixels; what is narrower is not drawn */
#define NAME_BYTES 2000 /* of a name in a hover title */

struct colour {
	const char *word; /* in the legend; NULL: not there */
	const char *const *shades;
};

/* As in the page (viewer/flame.js). */
static const struct colour colours[] = {
	[FRAME_ALL] = { NULL, palette_frame },
	[FRAME_PROCESS] = { "process", palette_frame },
	[FRAME_THREAD] = { "thread", palette_frame },
	[FRAME_RANGE] = { "operator, range", palette_range },
	[FRAME_RUNTIME] = { "runtime call", palette_call },
	[FRAME_DRIVER] = { "driver call", palette_call },
	[FRAME_KERNEL] = { "kernel", palette_kernel },
	[FRAME_MOVE] = { "memcpy or memset", palette_copy },
	[FRAME_CODE] = { "function of the program", palette_frame },
	[FRAME_OTHER] = { NULL, palette_other },
};

/* Bytes of the character at s, 0 when it is none that XML may have and a reader can trust. */
static size_t letter_bytes(const unsigned char *s)
{
	bool safe;
	const size_t n = text_next((const char *)s, strnlen((const char *)s, 4), &safe);
	const bool never = s[0] == 0xef && s[1] == 0xbf && s[2] > 0xbd; /* U+FFFE, U+FFFF */
	return s[0] < 0x80 ? 1 : never || !safe ? 0 : n;
}

static void put_letter(FILE *out, const unsigned char *s, size_t n)
{
	if (!n)
		fputs("\xef\xbf\xbd", out);
	else if (n > 1)
		fwrite(s, 1, n, out);
	else if (*s == '&')
		fputs("&amp;", out);
	else if (*s == '<')
		fputs("&lt;", out);
	else if (*s == '>')
		fputs("&gt;", out);
	else if (*s == '"')
		fputs("&quot;", out);
	else
		putc(*s < 0x20 || *s == 0x7f ? '?' : *s, out);
}

static size_t letters_in(const char *text)
{
	size_t n = 0;
	const unsigned char *s = (const unsigned char *)text;
	for (size_t bytes; *s; s += bytes ? bytes : 1, n++)
		bytes = letter_bytes(s);
	return n;
}

/* At most `most` letters, the last of them .. where some are missing. */
static void put_text(FILE *out, const char *text, size_t most)
{
	const unsigned char *s = (const unsigned char *)text;
	const bool cut = letters_in(text) > most;
	size_t left = cut && most > 2 ? most - 2 : most;
	for (; *s && left; left--) {
		const size_t bytes = letter_bytes(s);
		put_letter(out, s, bytes);
		s += bytes ? bytes : 1;
	}
	if (cut)
		fputs("..", out);
}

#define SHORT_MOST 160

/*
 * A kernel's name without its type, namespaces, template and parameters, which take the room of
 * what tells it from others: "void at::native::copy_kernel<4, (anonymous namespace)::F<int>>(int)"
 * is "copy_kernel".  The script does the same.
 */
static const char *short_name(const char *name, char to[SHORT_MOST])
{
	static const char unnamed[] = "(anonymous namespace)::";
	size_t n = 0;
	int depth = 0;
	if (!strpbrk(name, "<("))
		return name;
	for (const char *p = strncmp(name, "void ", 5) ? name : name + 5; *p; p++) {
		if (!strncmp(p, unnamed, sizeof unnamed - 1)) {
			p += sizeof unnamed - 2;
			continue;
		}
		if (*p == '(' && !depth && n)
			break;
		if (!depth && p[0] == ':' && p[1] == ':') {
			n = 0;
			p++;
		} else if (*p == '<' || *p == '(') {
			depth++;
		} else if ((*p == '>' || *p == ')') && depth) {
			depth--;
		} else if (!depth && n + 1 < SHORT_MOST) {
			to[n++] = *p;
		}
	}
	to[n] = '\0';
	return n ? to : name;
}

/* Shortens the names of kernels alone: a range may have any name. */
static const char *label_of(const struct flame *f, const struct flame_node *n, char to[SHORT_MOST])
{
	const char *name = f->names.v[n->name];
	return n->kind == FRAME_KERNEL ? short_name(name, to) : name;
}

struct canvas {
	const struct flame *f;
	FILE *out;
	uint64_t all_ns;
	double *x; /* by node: the left edge */
	unsigned depth;
};

static double width_of(const struct canvas *c, uint32_t i)
{
	return c->all_ns
		       ? (double)c->f->nodes.v[i].total_ns / (double)c->all_ns * (WIDTH - 2 * EDGE)
		       : 0;
}

static void put_colour(const struct canvas *c, const struct flame_node *n)
{
	const struct colour *k = &colours[n->kind <= FRAME_OTHER ? n->kind : FRAME_OTHER];
	const char *name = c->f->names.v[n->name];
	const uint32_t fnv = hash_fnv32(name, strlen(name)), h = fnv ^ fnv >> 15;
	/* A kernel's colour tells which it is, not only that it is one. */
	fputs(n->kind == FRAME_KERNEL ? palette_kernels[h % PALETTE_KERNELS]
				      : k->shades[h % PALETTE_SHADES],
		c->out);
}

static void put_title(const struct canvas *c, const struct flame_node *n)
{
	struct number time, own, count;
	fputs("<title>", c->out);
	put_text(c->out, c->f->names.v[n->name], NAME_BYTES);
	fprintf(c->out, "\n%s, %.2f %%", number_ns(&time, n->total_ns),
		(double)n->total_ns * 100 / (double)c->all_ns);
	if (n->count && n->self_ns != n->total_ns)
		fprintf(c->out, "; itself %s", number_ns(&own, n->self_ns));
	if (n->count == 1)
		fputs(", once", c->out);
	else if (n->count)
		fprintf(c->out, ", %s times", number_count(&count, n->count));
	fputs("</title>", c->out);
}

static void put_frame(const struct canvas *c, uint32_t i)
{
	const struct flame_node *n = &c->f->nodes.v[i];
	const double x = c->x[i] + EDGE, y = HEAD + n->depth * ROW, width = width_of(c, i);
	fprintf(c->out, "<g class=\"f\" data-d=\"%u\" data-x=\"%.3f\" data-w=\"%.3f\"%s>", n->depth,
		x, width, n->kind == FRAME_KERNEL ? " data-k=\"\"" : "");
	put_title(c, n);
	fprintf(c->out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" fill=\"", x, y,
		width > 0.6 ? width - 0.4 : width, ROW - 1);
	put_colour(c, n);
	fputs("\"/>", c->out);
	const double letters = (width - 6) / LETTER;
	char room[SHORT_MOST];
	if (letters >= 3) {
		fprintf(c->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5.5);
		put_text(c->out, label_of(c->f, n, room), (size_t)letters);
		fputs("</text>", c->out);
	}
	fputs("</g>\n", c->out);
}

/* Children left to right, the largest first; what is too narrow hides all below it. */
static void place(struct canvas *c, bool draw)
{
	const struct flame *f = c->f;
	uint32_t i = 0;
	c->x[0] = 0;
	while (i != FLAME_NONE) {
		const bool seen = width_of(c, i) >= LEAST;
		const uint32_t child = f->nodes.v[i].first_child;
		if (seen && f->nodes.v[i].depth > c->depth)
			c->depth = f->nodes.v[i].depth;
		if (seen && draw)
			put_frame(c, i);
		if (seen && child != FLAME_NONE) {
			c->x[child] = c->x[i];
			i = child;
			continue;
		}
		while (i != FLAME_NONE && f->nodes.v[i].next == FLAME_NONE)
			i = f->nodes.v[i].parent;
		if (i == FLAME_NONE)
			return;
		c->x[f->nodes.v[i].next] = c->x[i] + width_of(c, i);
		i = f->nodes.v[i].next;
	}
}

static const char style[] =
	"<style>#weir text{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;"
	"fill:#1c1c1c}#weir .f{cursor:pointer}#weir .f text{pointer-events:none}"
	"#weir .f:hover rect{stroke:#222;stroke-width:1}#weir .faded{opacity:.45}"
	"#weir .gone{display:none}#weir .head{font-size:15px;font-weight:bold}"
	"#weir .note{fill:#666}</style>\n";

static const char script[] =
	"<script><![CDATA[\n"
	"(function(){\n"
	"var svg=document.getElementById('weir'),left=10,all=1180,letter=6.62,told=svg.querySelector('#told');\n"
	"var frames=[].slice.call(svg.querySelectorAll('.f')).map(function(g){return{g:g,\n"
	"r:g.querySelector('rect'),t:g.querySelector('text'),d:+g.dataset.d,x:+g.dataset.x,\n"
	"w:+g.dataset.w,k:'k' in g.dataset,title:g.querySelector('title').textContent}});\n"
	"function cut(s,n){s=Array.from(s);return s.length<=n?s.join(''):s.slice(0,n-2).join('')+'..'}\n"
	"function kernel(s){if(!/[<(]/.test(s))return s;var d=0,o='';\n"
	"s=s.replace(/\\(anonymous namespace\\)::/g,'').replace(/^void /,'');\n"
	"for(var i=0;i<s.length;i++){var c=s[i];if(c=='('&&!d&&o)break;\n"
	"if(c=='<'||c=='(')d++;else if((c=='>'||c==')')&&d)d--;else if(!d)o+=c}\n"
	"return o.split('::').pop()||s}\n"
	"function draw(f,x,w){\n"
	"f.r.setAttribute('x',x);f.r.setAttribute('width',w>.6?w-.4:w);\n"
	"var n=Math.floor((w-6)/letter);\n"
	"if(n>=3&&!f.t){f.t=document.createElementNS(svg.namespaceURI,'text');\n"
	"f.t.setAttribute('y',+f.r.getAttribute('y')+12.5);f.g.appendChild(f.t)}\n"
	"if(f.t){f.t.setAttribute('x',x+3);f.t.textContent=n>=3?cut(f.k?kernel(f.title.split('\\n')[0]):f.title.split('\\n')[0],n):''}}\n"
	"function zoom(z){frames.forEach(function(f){\n"
	"var above=f.d<z.d&&f.x<=z.x+.01&&f.x+f.w>=z.x+z.w-.01;\n"
	"var inside=f.d>=z.d&&f.x>=z.x-.01&&f.x+f.w<=z.x+z.w+.01;\n"
	"f.g.setAttribute('class','f'+(above?' faded':inside?'':' gone'));\n"
	"if(above)draw(f,left,all);\n"
	"if(inside)draw(f,left+(f.x-z.x)/z.w*all,f.w/z.w*all)})}\n"
	"frames.forEach(function(f){\n"
	"f.g.addEventListener('click',function(e){e.stopPropagation();zoom(f)});\n"
	"f.g.addEventListener('mouseover',function(){told.textContent=cut(f.title.replace('\\n','  '),170)});\n"
	"f.g.addEventListener('mouseout',function(){told.textContent=''})});\n"
	"svg.addEventListener('click',function(){zoom(frames[0])});\n"
	"document.addEventListener('keydown',function(e){if(e.key==='Escape')zoom(frames[0])});\n"
	"})();\n"
	"]]></script>\n";

static void put_legend(const struct canvas *c, double y)
{
	double x = EDGE;
	bool there[FRAME_OTHER + 1] = { false };
	for (size_t i = 0; i < c->f->nodes.n; i++)
		if (c->f->nodes.v[i].total_ns)
			there[c->f->nodes.v[i].kind] = true;
	for (int k = 0; k <= FRAME_OTHER; k++) {
		const struct colour *l = &colours[k];
		if (!there[k] || !l->word)
			continue;
		fprintf(c->out,
			"<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" "
			"fill=\"%s\"/><text class=\"note\" x=\"%.0f\" y=\"%.0f\">%s"
			"</text>\n",
			x, y, l->shades[PALETTE_SHADES / 2], x + 17, y + 10, l->word);
		x += 40 + (double)strlen(l->word) * LETTER;
	}
}

static void put_head(const struct canvas *c)
{
	const struct flame *f = c->f;
	struct number n;
	char about[80] = "";
	if (f->sampled)
		snprintf(
			about, sizeof about, ", estimated: one launch in %u was timed", f->sampled);
	fprintf(c->out, "<text class=\"head\" x=\"%.0f\" y=\"24\">", EDGE);
	put_text(c->out, *f->program ? f->program : "(program unknown)", 120);
	fprintf(c->out,
		"</text>\n<text class=\"note\" x=\"%.0f\" y=\"44\">%s %s%s; click a frame to "
		"widen it, Escape for all</text>\n",
		EDGE, number_ns(&n, c->all_ns),
		f->by_device ? "on devices" : "in CUDA calls on the host", about);
}

void flame_put_svg(const struct flame *f, FILE *out)
{
	struct canvas c = { .f = f, .out = out, .all_ns = f->nodes.v[0].total_ns };
	c.x = xcalloc(f->nodes.n + 1, sizeof *c.x);
	place(&c, false);
	const double bottom = HEAD + (c.depth + 1) * ROW, height = bottom + FOOT + 16;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg id=\"weir\" xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
		"height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
		WIDTH, height, WIDTH, height);
	fputs(style, out);
	fprintf(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", WIDTH, height);
	put_head(&c);
	if (c.all_ns)
		place(&c, true);
	else
		fprintf(out, "<text x=\"%.0f\" y=\"%.0f\">Nothing took any time.</text>\n", EDGE,
			HEAD + 12);
	fprintf(out, "<text id=\"told\" x=\"%.0f\" y=\"%.0f\"></text>\n", EDGE, bottom + 16);
	put_legend(&c, bottom + 28);
	if (c.all_ns)
		fputs(script, out);
	fputs("</svg>\n", out);
	free(c.x);
}
