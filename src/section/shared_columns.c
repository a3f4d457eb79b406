/* Values of the groups of columns that several sections share: see shared_columns.h. */
#include "section/shared_columns.h"

#include "base/expect.h"
#include "model/roofline.h"

static struct value whole(double value)
{
	return value_u64(sat_from(value + 0.5));
}

SHARED_GETTER(get_share_of_all, uint64_t, ns,
	row->rows->all > 0 ? value_real((double)*ns / row->rows->all) : value_null())
SHARED_GETTER(get_hist_p50, struct hist, h, value_u64_if(h->count, hist_at(h, 0.5)))
SHARED_GETTER(get_activity_kind, uint16_t, kind, value_text(activity_kind_name(*kind)))
SHARED_GETTER(get_range_kind, uint16_t, kind, value_text(range_kind_name(*kind)))

struct value get_device_total(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	expect(w->graph_count <= w->count, "what graphs ran is part of all that ran");
	return value_u64_if(!row->r->sampled, w->total_ns);
}

SHARED_GETTER(
	get_device_estimate, struct activity_row, it, value_u64_if(row->r->sampled, it->total_ns))

struct value get_device_estimate_error(const struct row *row, const void *of)
{
	const struct activity_row *w = of;
	if (!row->r->sampled)
		return value_absent();
	return isnan(w->error_ns) ? value_null() : whole(w->error_ns);
}

SHARED_GETTER(get_device_timed, struct activity_row, it, value_u64(it->hist.count))
SHARED_GETTER(get_device_min, struct activity_row, w, value_u64_if(w->hist.count, w->hist.min))
SHARED_GETTER(get_device_mean, struct activity_row, w,
	w->hist.count ? whole(w->spread.mean) : value_null())
SHARED_GETTER(get_device_p50, struct activity_row, it, value_u64(hist_at(&it->hist, 0.5)))
SHARED_GETTER(get_device_p90, struct activity_row, it, value_u64(hist_at(&it->hist, 0.9)))
SHARED_GETTER(get_device_p99, struct activity_row, it, value_u64(hist_at(&it->hist, 0.99)))
SHARED_GETTER(get_device_max, struct activity_row, w, value_u64_if(w->hist.count, w->hist.max))
SHARED_GETTER(get_device_stddev, struct activity_row, w,
	w->hist.count > 1 ? whole(spread_deviation(&w->spread)) : value_null())

struct value get_bound_class(const struct row *row, const void *of)
{
	const struct roofline *l = of;
	struct value v = value_text(bound_class_name[l->class]);
	expect(!l->class == !l->basis, "a class has what it is based on");
	v.guess = l->basis == BASIS_NAME;
	return v;
}

SHARED_GETTER(
	get_bound, void, of, value_text(roofline_text(of, row->text, ROW_TEXT) ? row->text : NULL))
SHARED_GETTER(get_bound_basis, struct roofline, it, value_text(bound_basis_name[it->basis]))

/* FLOPs and bytes are whole numbers, and all digits are wanted. */
static struct value cost(bool known, double value)
{
	if (!known)
		return value_null();
	return value < 1e18 ? value_u64((uint64_t)value) : value_real(value);
}

SHARED_GETTER(get_flops, struct roofline, l, cost(l->has_flops, l->flops))
SHARED_GETTER(get_flop_bytes, struct roofline, l, cost(l->has_bytes, l->bytes))
SHARED_GETTER(get_flops_per_second, struct roofline, l,
	l->has_flops && l->ns ? value_real(l->flops * 1e9 / (double)l->ns) : value_null())
SHARED_GETTER(get_unit, struct roofline, l, value_text(l->has_unit ? gpu_unit_word(l->unit) : NULL))

static struct value share_above_zero(double share)
{
	return share > 0 ? value_real(share) : value_null();
}

SHARED_GETTER(get_flops_share, struct roofline, it, share_above_zero(it->flops_share))
SHARED_GETTER(
	get_flops_peak_share, void, of, share_above_zero(roofline_peak_share(row->r->gpu, of)))
SHARED_GETTER(get_bytes_share, struct roofline, it, share_above_zero(it->bytes_share))

void values_add(struct values *v, uint64_t ns)
{
	hist_add(&v->hist, ns);
	spread_add(&v->spread, ns);
	v->total += ns;
}

SHARED_GETTER(get_values_count, struct values, it, value_u64(it->hist.count))
SHARED_GETTER(get_values_total, struct values, v, value_u64_if(v->hist.count, v->total))
SHARED_GETTER(
	get_values_mean, struct values, v, v->hist.count ? whole(v->spread.mean) : value_null())

static struct value quantile(const struct values *v, double p)
{
	return v->hist.count ? value_u64(hist_at(&v->hist, p)) : value_null();
}

SHARED_GETTER(get_values_p50, void, of, quantile(of, 0.5))
SHARED_GETTER(get_values_p90, void, of, quantile(of, 0.9))
SHARED_GETTER(get_values_p99, void, of, quantile(of, 0.99))
SHARED_GETTER(get_values_min, struct values, v, value_u64_if(v->hist.count, v->hist.min))
SHARED_GETTER(get_values_max, struct values, v, value_u64_if(v->hist.count, v->hist.max))
SHARED_GETTER(get_values_stddev, struct values, v,
	v->hist.count > 1 ? whole(spread_deviation(&v->spread)) : value_null())
