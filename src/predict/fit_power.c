/* The normal equations of a power law, by Cholesky's method: see fit_power.h. */
#include "predict/fit_power.h"

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
