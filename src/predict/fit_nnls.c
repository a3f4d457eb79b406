/* Non-negative least squares for a few terms: see fit_nnls.h. */
#include "predict/fit_nnls.h"

#include <stdbool.h>
#include <string.h>

#define N        NNLS_TERMS
#define RIDGE    1e-5
#define SMALL    1e-9
#define ROUNDING 1e-12

void normal_add(struct normal *n, const double terms[static N], double weight)
{
	for (int i = 0; i < N; i++) {
		const double term = weight * terms[i];
		for (int j = 0; j < N; j++)
			n->a[i][j] += term * terms[j];
		n->b[i] += term;
	}
}

void normal_less(struct normal *n, const struct normal *part)
{
	for (int i = 0; i < N; i++) {
		const double before = n->a[i][i];
		for (int j = 0; j < N; j++)
			n->a[i][j] -= part->a[i][j];
		n->b[i] -= part->b[i];
		/* a term that is only in the part leaves no more than rounding */
		if (n->a[i][i] < before * ROUNDING)
			n->a[i][i] = 0;
	}
}

/* Newton's square root: enough for a scale, and no libm in the hook. */
static double root(double x)
{
	double r = x > 1 ? x : 1;
	for (int i = 0; i < 64 && r * r > x * (1 + 1e-12); i++)
		r = (r + x / r) / 2;
	return r;
}

/* Gauss-Jordan on the rows and columns in `in`; the ridge has made the pivots positive. */
static void solve_some(const struct normal *n, const bool in[static N], double z[static N])
{
	double m[N][N + 1];
	int at[N], k = 0;
	for (int i = 0; i < N; i++) {
		z[i] = 0;
		if (in[i])
			at[k++] = i;
	}
	for (int i = 0; i < k; i++) {
		for (int j = 0; j < k; j++)
			m[i][j] = n->a[at[i]][at[j]];
		m[i][k] = n->b[at[i]];
	}
	for (int p = 0; p < k; p++)
		for (int i = 0; i < k; i++) {
			const double factor = i == p ? 0 : m[i][p] / m[p][p];
			for (int j = p; j <= k && factor != 0; j++)
				m[i][j] -= factor * m[p][j];
		}
	for (int i = 0; i < k; i++)
		z[at[i]] = m[i][k] / m[i][i];
}

/* The term that would help most; -1 when none would. */
static int next_term(const struct normal *n, const bool in[static N], const double x[static N])
{
	int best = -1;
	double most = SMALL;
	for (int i = 0; i < N; i++) {
		double gain = n->b[i];
		for (int j = 0; j < N; j++)
			gain -= n->a[i][j] * x[j];
		if (!in[i] && gain > most) {
			most = gain;
			best = i;
		}
	}
	return best;
}

/* From x towards z as far as all stay positive; terms that reach 0 leave.  False: z was reached. */
static bool retreat(bool in[static N], double x[static N], const double z[static N])
{
	double step = 1;
	for (int i = 0; i < N; i++)
		if (in[i] && z[i] <= 0 && x[i] / (x[i] - z[i]) < step)
			step = x[i] / (x[i] - z[i]);
	bool left = false;
	for (int i = 0; i < N; i++) {
		x[i] += in[i] ? step * (z[i] - x[i]) : 0;
		if (in[i] && z[i] <= 0 && x[i] <= SMALL * SMALL) {
			in[i] = false;
			x[i] = 0;
			left = true;
		}
	}
	return left;
}

static void solve_scaled(const struct normal *n, double x[static N])
{
	bool in[N] = { false };
	double z[N];
	for (int turn = 0; turn < 3 * N; turn++) {
		const int term = next_term(n, in, x);
		if (term < 0)
			return;
		in[term] = true;
		do
			solve_some(n, in, z);
		while (retreat(in, x, z));
	}
}

void normal_solve(const struct normal *n, double ret_x[static N])
{
	struct normal scaled = { 0 };
	double scale[N];
	for (int i = 0; i < N; i++)
		scale[i] = n->a[i][i] > 0 ? 1 / root(n->a[i][i]) : 0;
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			scaled.a[i][j] = n->a[i][j] * scale[i] * scale[j];
		scaled.a[i][i] += RIDGE + (scale[i] == 0);
		scaled.b[i] = n->b[i] * scale[i];
	}
	memset(ret_x, 0, N * sizeof ret_x[0]);
	solve_scaled(&scaled, ret_x);
	for (int i = 0; i < N; i++)
		ret_x[i] *= scale[i];
}

void power_add(struct power_sums *sums, const float terms[static POWER_TERMS], float log_ns)
{
	for (int i = 0; i < POWER_TERMS; i++) {
		for (int j = 0; j <= i; j++)
			sums->product[i][j] += (double)terms[i] * (double)terms[j];
		sums->product[i][POWER_TERMS] += (double)terms[i] * (double)log_ns;
	}
}

/* L D L', in place, so that no root is taken; D stands in the diagonal. */
static void factor(double m[POWER_TERMS][POWER_TERMS + 1], double ridge)
{
	for (int i = 0; i < POWER_TERMS; i++) {
		m[i][i] += i ? ridge : 1e-6;
		for (int j = 0; j < i; j++) {
			for (int k = 0; k < j; k++)
				m[i][j] -= m[i][k] * m[j][k] * m[k][k];
			m[i][j] /= m[j][j];
			m[i][i] -= m[i][j] * m[i][j] * m[j][j];
		}
		/* rounding of what depends on others */
		m[i][i] = m[i][i] > 1e-9 ? m[i][i] : 1e9;
	}
}

void power_solve(const struct power_sums *sums, double ridge, float ret_weights[static POWER_TERMS])
{
	struct power_sums s = *sums;
	double x[POWER_TERMS];
	factor(s.product, ridge);
	for (int i = 0; i < POWER_TERMS; i++) {
		x[i] = s.product[i][POWER_TERMS];
		for (int k = 0; k < i; k++)
			x[i] -= s.product[i][k] * x[k];
	}
	for (int i = POWER_TERMS; i-- > 0;) {
		x[i] /= s.product[i][i];
		for (int k = i + 1; k < POWER_TERMS; k++)
			x[i] -= s.product[k][i] * x[k];
		ret_weights[i] = (float)x[i];
	}
}
