/* Values of the groups of columns that several sections share: see shared_columns.h. */
#include "section/shared_columns.h"

#include <math.h>

#include "base/expect.h"
#include "model/roofline.h"

#include "base/banned.h"

static struct value whole(double value)
{
	return value_u64(sat_from(value + 0.5));
}

/* ---- what devices did ---- */

struct value get_device_total(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	expect(w->graph_count <= w->count, "what graphs ran is part of all that ran");
	return value_u64_if(!row->r->sampled, w->total_ns);
}

struct value get_device_estimate(const struct row *row, const void *of)
{
	return value_u64_if(row->r->sampled, ((const struct activity_row *)of)->total_ns);
}

struct value get_device_estimate_error(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	if (!row->r->sampled)
		return value_absent();
	return isnan(w->error_ns) ? value_null() : whole(w->error_ns);
}

struct value get_device_timed(const struct row *row, const void *of)
{
	return value_u64(((const struct activity_row *)of)->hist.count);
}

struct value get_device_min(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	return value_u64_if(w->hist.count, w->hist.min);
}

struct value get_device_mean(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	return w->hist.count ? whole(w->spread.mean) : value_null();
}

struct value get_device_p50(const struct row *row, const void *of)
{
	return value_u64(hist_at(&((const struct activity_row *)of)->hist, 0.5));
}

struct value get_device_p90(const struct row *row, const void *of)
{
	return value_u64(hist_at(&((const struct activity_row *)of)->hist, 0.9));
}

struct value get_device_p99(const struct row *row, const void *of)
{
	return value_u64(hist_at(&((const struct activity_row *)of)->hist, 0.99));
}

struct value get_device_max(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	return value_u64_if(w->hist.count, w->hist.max);
}

struct value get_device_stddev(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	return w->hist.count > 1 ? whole(spread_deviation(&w->spread)) : value_null();
}

/* ---- what bounds it ---- */

struct value get_bound_class(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	struct value v = value_text(bound_class_name[l->class]);
	expect(!l->class == !l->basis, "a class has what it is based on");
	v.guess = l->basis == BASIS_NAME;
	return v;
}

struct value get_bound(const struct row *row, const void *of)
{
	return value_text(roofline_text(of, row->text, ROW_TEXT) ? row->text : NULL);
}

struct value get_bound_basis(const struct row *row, const void *of)
{
	return value_text(bound_basis_name[((const struct roofline *)of)->basis]);
}

/* FLOPs and bytes are whole numbers, and all digits are wanted. */
static struct value cost(bool known, double value)
{
	if (!known)
		return value_null();
	return value < 1e18 ? value_u64((uint64_t)value) : value_real(value);
}

struct value get_flops(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	return cost(l->has_flops, l->flops);
}

struct value get_flop_bytes(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	return cost(l->has_bytes, l->bytes);
}

struct value get_flops_per_second(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	return l->has_flops && l->ns ? value_real(l->flops * 1e9 / (double)l->ns) : value_null();
}

struct value get_unit(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	return value_text(l->has_unit ? gpu_unit_word(l->unit) : NULL);
}

static struct value share_above_zero(double share)
{
	return share > 0 ? value_real(share) : value_null();
}

struct value get_flops_share(const struct row *row, const void *of)
{
	return share_above_zero(((const struct roofline *)of)->flops_share);
}

struct value get_flops_peak_share(const struct row *row, const void *of)
{
	return share_above_zero(roofline_peak_share(row->r->gpu, of));
}

struct value get_bytes_share(const struct row *row, const void *of)
{
	return share_above_zero(((const struct roofline *)of)->bytes_share);
}

/* ---- durations of one kind ---- */

void values_add(struct values *v, uint64_t ns)
{
	hist_add(&v->hist, ns);
	spread_add(&v->spread, ns);
	v->total += ns;
}

struct value get_values_count(const struct row *row, const void *of)
{
	return value_u64(((const struct values *)of)->hist.count);
}

struct value get_values_total(const struct row *row, const void *of)
{
	const struct values *v = of;
	return value_u64_if(v->hist.count, v->total);
}

struct value get_values_mean(const struct row *row, const void *of)
{
	const struct values *v = of;
	return v->hist.count ? whole(v->spread.mean) : value_null();
}

static struct value quantile(const struct values *v, double p)
{
	return v->hist.count ? value_u64(hist_at(&v->hist, p)) : value_null();
}

struct value get_values_p50(const struct row *row, const void *of)
{
	return quantile(of, 0.5);
}

struct value get_values_p90(const struct row *row, const void *of)
{
	return quantile(of, 0.9);
}

struct value get_values_p99(const struct row *row, const void *of)
{
	return quantile(of, 0.99);
}

struct value get_values_min(const struct row *row, const void *of)
{
	const struct values *v = of;
	return value_u64_if(v->hist.count, v->hist.min);
}

struct value get_values_max(const struct row *row, const void *of)
{
	const struct values *v = of;
	return value_u64_if(v->hist.count, v->hist.max);
}

struct value get_values_stddev(const struct row *row, const void *of)
{
	const struct values *v = of;
	return v->hist.count > 1 ? whole(spread_deviation(&v->spread)) : value_null();
}
