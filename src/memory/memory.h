/*
 * Memory beyond totals: live memory over time, the blocks at the peak, free extents, and growth
 * between iterations.
 *
 * A report's workers note allocations as memory_ops and virtual memory calls as vmm_ops (tally.h).
 * memory_fill() replays both in the order of time. Sizes are those requested, without the driver's
 * additions. One owner thread.
 */
#pragma once

#include "base/map.h"
#include "model/memory_op.h"
#include "model/report.h"

struct level { /* of something that goes up and down */
	uint64_t now, most;
};

struct memory_vmm {
	uint64_t creates, maps, reserves;
	uint64_t unknown; /* calls about addresses whose mapping or reservation was not recorded */
	struct level reserved, mapped;
	struct level backed; /* of handles that are held or mapped */
	struct level segments;
	uint64_t segments_at_peak; /* when most was live */
};

#define MEMORY_POINTS 960u /* a multiple of 60, the columns of the chart */

/* The live set in one of MEMORY_POINTS equal parts of the time. */
struct memory_point {
	uint64_t live, most;           /* on the GPU: at its end, and at most */
	uint64_t host_live, host_most; /* pinned */
	/* When most was reserved and not live; valid with reserved_known, as is the next. */
	uint64_t reserved, unused;
	uint64_t reserved_most; /* at any time of it */
	bool reserved_known;
};

/* How it is known what is reserved, of which a part is live. */
enum reserved_source {
	RESERVED_UNKNOWN,
	RESERVED_ALLOCATOR, /* an allocator above the driver says what it has from it */
	RESERVED_SEGMENTS,  /* its segments are in the trace */
	RESERVED_PAGES,     /* pages of 2 MiB in which something is live */
};
extern const char *const reserved_source_name[];

/* Memory that is reserved and not live, over the time.  A state counts when it lasts: between
 * calls. */
struct memory_unused {
	uint8_t source; /* enum reserved_source */
	bool known;     /* at any time; else nothing below means anything */
	uint64_t peak_ticks, reserved_peak, peak_live; /* when most was reserved, first */
	double reserved_area, unused_area;             /* bytes times ticks */
	uint64_t unknown_ticks; /* not said yet, or more is live than is said to be reserved */
	uint64_t worst_ticks;   /* the first moment in which most was reserved and not live */
	uint64_t worst_reserved, worst_live;
	uint32_t worst_ops;              /* so many operations came before */
	struct live_blocks worst_blocks; /* live then, by bytes */
};

/* Functions that give out memory or take it back: how long their calls took, and for how long some
 * thread was in one, which is valid when all were timed. */
struct memory_call_time {
	const struct call_row *call;
	uint64_t busy_ticks;
};

struct memory_time {
	ARRAY(struct memory_call_time) calls; /* by total time */
	uint64_t count, timed;                /* of all */
	uint64_t busy_ticks;
};

struct memory_row {
	uint64_t key; /* calls: function id; classes: log2 of the size; sources and stacks: index */
	uint64_t allocs, bytes;
	uint64_t freed, lifetime_ticks; /* of those freed, together */
	uint64_t live, live_bytes;      /* at exit */
	uint64_t at_peak, at_peak_bytes;
};

struct memory_rows {
	struct memory_row *v;
	size_t n, room;
};

/* Free space between blocks of one kind, summed over processes. */
struct free_extents {
	uint64_t reach_bytes;   /* address space that is looked at */
	uint64_t free_bytes;    /* of it */
	uint64_t largest_bytes; /* the largest free extent of each process */
	uint64_t count;
};

struct memory_space {
	bool used;
	uint64_t live_bytes;
	struct free_extents span;  /* from the lowest live address to the highest */
	struct free_extents pages; /* in the pages of 2 MiB that a block has ever touched */
};

enum mark_kind { MARK_NONE, MARK_KERNEL, MARK_SIZE };

/* How the live set grows from one iteration to the next. */
struct memory_growth {
	enum mark_kind mark;   /* what an iteration is counted by */
	const char *kernel;    /* MARK_KERNEL: report.kernel_rows' name */
	size_t threads;        /* that launched it: marks are the launches of one */
	uint64_t size;         /* MARK_SIZE: of the allocation */
	uint64_t marks;        /* seen */
	uint64_t stride;       /* of them every stride-th was looked at */
	uint64_t period;       /* marks an iteration; 0: they don't repeat, a mark is taken */
	uint64_t periods;      /* iterations looked at; fewer than GROWTH_PERIODS: not said */
	double bytes_a_period; /* Theil and Sen's slope of the least that is live in each */
	double confidence;     /* Kendall's tau of the same: 1 it always grows, 0 no trend */
};
#define GROWTH_PERIODS 8u

struct memory_operator {
	const char *name; /* NULL: outside of all ranges */
	uint64_t at_peak, at_peak_bytes;
	/* The module and the line of Python where most of these bytes were allocated, or NULL. */
	const char *module, *line;
	uint64_t place_bytes;
};

/* Live memory on the GPU by its owner: of each point of the time, when most was. */
enum stack_by {
	STACK_OPERATOR, /* the innermost range around the allocation; without ranges no layers */
	STACK_CALL,     /* function id */
	STACK_SIZE,     /* log2 */
	STACK_KIND,     /* enum memory_kind */
	STACK_BYS
};
extern const char *const stack_by_name[STACK_BYS];
/* The owners that had most at once; the last is the rest, if there are more. */
#define STACK_LAYERS 10u
#define STACK_REST   UINT64_MAX

struct memory_layer {
	uint64_t key; /* operators: into meta.names, or META_NONE; or STACK_REST */
	uint64_t most;
	uint64_t live[MEMORY_POINTS];
};

struct memory_stack {
	ARRAY(struct memory_layer) layers; /* the largest first; none: not known */
	struct map map;
	size_t rest; /* how many are in the last */
};

struct marks {
	uint64_t *ticks; /* sorted */
	uint64_t *least; /* live bytes, at least, from here to the next */
	size_t n;
	size_t at; /* the next */
};

struct memory_detail {
	ARRAY(struct memory_source) sources;
	struct map source_map;
	uint64_t first_ticks, last_ticks;
	struct memory_point points[MEMORY_POINTS];
	uint32_t point;                    /* the one at hand */
	uint64_t most_done[MEMORY_POINTS]; /* how many operations were done when most was live */
	uint64_t done;                     /* by now */
	struct memory_stack stack[STACK_BYS];
	uint64_t before_bytes; /* of the GPU's, live when what is read begins: counted as allocated
				*/
	uint64_t peak_ticks, peak_seq, peak_live;
	struct memory_rows calls;    /* by bytes */
	struct memory_rows classes;  /* by size; of the GPU, as are the next two */
	struct memory_rows origins;  /* of sources; by bytes */
	const struct stacks *stacks; /* the report's; NULL: none was recorded */
	struct memory_rows callers;  /* of stacks.rows, all kinds of memory; by bytes live at exit,
				      * then at  the peak */
	ARRAY(struct memory_operator) operators;
	struct memory_space at_peak[MEMORY_KINDS], at_end[MEMORY_KINDS];
	uint64_t nowhere_bytes; /* at the peak, of blocks whose address an importer made up */
	struct memory_vmm vmm;
	struct memory_growth growth;
	struct memory_unused unused;
	struct memory_time time;
	struct marks marks;
	struct unused_replay
		*unused_replay; /* memory_unused.c; only while operations are replayed */
	struct map call_map, class_map, origin_map, caller_map;
	uint64_t matched; /* GPU blocks whose free was seen */
	bool leaks_known;
};

struct tally;

/* Replays the operations of all lists in time order into r's memory; sorts the lists.
 * r->memory_detail may be NULL. */
void memory_replay(struct report *r, struct memory_list *lists, unsigned count);

/* memory_replay() and everything of struct memory_detail.  lists has room for one more. */
int memory_fill(struct report *r, struct memory_list *lists, unsigned count, const struct tally *t);
void memory_free(struct memory_detail *d);

/* Each list by time; then the next operation of all lists, taken from its list; NULL at the end. */
void memory_sort(struct memory_list *lists, unsigned count);
struct memory_op *memory_next(struct memory_list *lists, unsigned count);

/* Copies an allocation; sorts by bytes. */
void memory_keep_block(const struct report *r, struct live_blocks *to, const struct memory_op *op);
void memory_sort_blocks(struct live_blocks *blocks);

/* One minus the largest free extent of all that is free; false when nothing is free. */
bool fragmentation_of(const struct free_extents *h, double *ret_share);

/* The following are parts of memory_fill(), each in a file of its own. */

/* memory_detail.c: called by the replay.  Live bytes are those before the operation, and after. */
/* The operations before `seq` are not of what is read. */
void detail_begin_part(struct memory_detail *d, const struct report *r, uint32_t seq);
void detail_before(struct memory_detail *d, const struct report *r, uint32_t seq, uint64_t ticks);

/* The call stack of an allocation, into stacks.rows, or STACK_NONE. */
uint32_t detail_stack(const struct memory_detail *d, const struct memory_op *op);
void detail_alloc(struct memory_detail *d, const struct memory_op *op);
void detail_free(struct memory_detail *d, const struct memory_op *block, uint64_t ticks);
void detail_after(struct memory_detail *d, const struct report *r, uint32_t seq, uint64_t ticks);

/* memory_vmm.c: what was mapped when.  Blocks of VMM memory, from their creation until they are
 * neither held nor mapped, become operations; their `source` is the thread's id. */
struct vmm_blocks {
	ARRAY(struct memory_op) ops;
};
void vmm_replay(struct memory_vmm *v, const struct memory_list *lists, unsigned count,
	struct vmm_blocks *blocks);

/* When segments come and go, in the order of time; free ret_changes. */
struct vmm_change {
	uint64_t ticks, add, take;
};
struct vmm_changes { /* as ARRAY() */
	struct vmm_change *v;
	size_t n, room;
};
void vmm_segment_changes(
	const struct memory_list *lists, unsigned count, struct vmm_changes *ret_changes);

/* The bytes of segments at the peak: a second look, when the peak is known. */
uint64_t vmm_segments_at(const struct memory_list *lists, unsigned count, uint64_t ticks);

/* memory_space.c: where blocks are. */
struct extent {
	uint64_t start, end;
	uint32_t process;
	uint8_t kind;
};
struct page_run { /* of pages; hi is not in it */
	uint64_t lo, hi;
};
struct touched_set {
	uint32_t process;
	uint8_t kind;
	ARRAY(struct page_run) runs;
	size_t tidy; /* of runs: how many are sorted and apart */
};
struct touched { /* pages of 2 MiB of one kind in one process */
	struct map map;
	ARRAY(struct touched_set) sets;
};
void touched_add(struct touched *t, const struct extent *e);
void touched_fini(struct touched *t);

/* Sorts the extents, and what was touched. */
void space_measure(
	struct extent *v, size_t n, struct touched *t, struct memory_space space[MEMORY_KINDS]);

/* memory_growth.c */
void growth_find_marks(
	struct report *r, const struct memory_list *lists, unsigned count, const struct tally *t);
void growth_finish(struct memory_detail *d);

/* memory_ranges.c: in which ranges calls were made; of those that allocate for the range around
 * them (blame.h), in that one. */
struct range_query {
	uint64_t ticks, bytes;
	uint32_t process, tid;
	uint32_t tag;  /* the caller's */
	uint32_t name; /* the answer: the innermost range that nests, into meta.names, or META_NONE
			*/
};

/* The same one by one; it is quickest in the order of time.  Close them also after a failure; NULL
 * is without any. */
struct memory_ranges;
int ranges_open(const struct trace *t, const struct meta *m, struct memory_ranges **ret_ranges);
uint32_t ranges_at(struct memory_ranges *g, uint32_t process, uint32_t tid, uint64_t ticks);
bool ranges_any(const struct memory_ranges *g);
void ranges_close(struct memory_ranges *g);

/* Fills in the names; *ret_any is whether the trace has ranges at all. */
int ranges_name(const struct trace *t, const struct meta *m, struct range_query *v, size_t n,
	bool *ret_any);

/* memory_stack.c: of each block of the GPU, in the order of time; then the end.  overflown: sizes
 * that can't be added up, and no layers. */
void stack_add(struct memory_detail *d, struct memory_ranges *ranges, const struct memory_op *op,
	uint32_t seq);
void stack_finish(struct memory_detail *d, bool overflown);
void stack_free(struct memory_detail *d);

/* memory_unused.c: what is reserved, beside what is live.  The replay says what it does: first
 * what time it is, then what has changed. */
void unused_begin(struct report *r, const struct memory_list *lists, unsigned count);
void unused_change(struct memory_detail *d, const struct memory_op *block, bool is_free);
void unused_advance(struct memory_detail *d, uint64_t ticks, uint32_t ops);
/* Whether the block, which was operation seq, was live at the worst moment. */
bool unused_is_worst(const struct memory_detail *d, const struct memory_op *block, uint32_t seq);
void unused_end(struct memory_detail *d);

/* The points of the timeline. */
uint32_t detail_point(const struct memory_detail *d, uint64_t ticks);

/* memory_time.c: report.call_rows are there. */
void memory_time_fill(struct report *r, const struct memory_list *lists, unsigned count);

/* The share of the run in which some thread was in such a call, or in one of this row; NAN when not
 * every call was timed. */
double memory_time_share(const struct report *r, const struct memory_call_time *row_or_null);

/* A histogram of one function's calls: those from 2^n to less than 2^(n+1) ns, for each n. */
#define TIME_CLASSES 64u
struct time_classes {
	uint64_t count[TIME_CLASSES];
	unsigned first, last; /* that have any */
};
void memory_time_classes(
	const struct report *r, const struct call_row *c, struct time_classes *ret_classes);

#define REFUSAL_HOLDERS 3u

struct refusal {
	uint64_t ticks;
	uint64_t asked, quota, used, contexts; /* bytes */
	struct refusal_holder {
		uint32_t pid;
		char program[32];
		uint64_t bytes;
	} holder[REFUSAL_HOLDERS]; /* who had most, first */
	uint32_t holders;
};

struct refusals {
	uint64_t count; /* 0: the others are empty */
	struct refusal first, largest;
};

/* 0 or -errno; what was found until then is there. */
int memory_refusals(const struct report *r, struct refusals *ret);
