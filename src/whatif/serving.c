/* The models of a repository and what arrives for them. */
#include "whatif/serving.h"

#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "store/config_queue.h"
#include "store/store.h"

#define SECONDS_DEFAULT 60.0
#define RATE_MOST       1e7

static uint64_t ns_of(uint64_t us)
{
	return us ? sat_mul(us, 1000) : BATCH_NEVER;
}

/* The medians of a saved latency by size, and how much single batches differ. */
static int read_latency(struct serving_model *m, FILE *in, struct error *err)
{
	struct simulated_model *s = &m->simulated;
	struct batcher *b = batcher_new(BATCH_SLACK);
	struct batch_model *of = batch_model_add(b, &s->config);
	const int code = batch_latency_read(of, in, err);
	if (!code) {
		m->typical_ns = xcalloc(s->config.max_rows + 1, sizeof *m->typical_ns);
		for (uint32_t rows = 1; rows <= s->config.max_rows; rows++)
			m->typical_ns[rows] = (double)batch_typical(of, rows);
		s->typical_ns = m->typical_ns;
		s->deviation = batch_deviation(of);
	}
	batcher_free(b);
	return code;
}

/* Opens the file of the newest version that the configuration selects and that has run. */
static FILE *open_kept(
	struct store *store, const struct store_model *m, uint64_t *ret_version, FILE **ret_model)
{
	for (size_t i = m->versions.n; i-- > 0;) {
		const uint64_t version = m->versions.v[i].number;
		FILE *model = m->versions.v[i].selected
				      ? store_kept_open(store, STORE_MODEL, m->name, version)
				      : NULL;
		FILE *latency =
			model ? store_kept_open(store, STORE_LATENCY, m->name, version) : NULL;
		*ret_version = version;
		*ret_model = model;
		if (latency)
			return latency;
		if (model)
			fclose(model);
	}
	return NULL;
}

static void take_config(struct serving *w, struct serving_model *m, const struct model_config *c)
{
	const struct config_wait wait = config_wait(c, 0);
	m->simulated.config = config_queue(c, w->delay_ns);
	m->simulated.config.name = m->name;
	m->simulated.deadline_ns = ns_of(c->weir_deadline_us);
	m->simulated.timeout_ns = wait.timeout_ns;
	m->simulated.class = wait.class;
}

static int add_model(
	struct serving *w, struct store *store, const struct store_model *from, struct error *err)
{
	uint64_t version;
	struct error why;
	FILE *model, *latency = from->config ? open_kept(store, from, &version, &model) : NULL;
	if (!latency) {
		*(array_push(&w->left_out)) = xstrdup(from->name);
		return 0;
	}
	struct serving_model *m = array_push(&w->models);
	*m = (struct serving_model){ .name = xstrdup(from->name), .version = version };
	int code = config_complete_from(from->config, model, &why);
	if (!code) {
		take_config(w, m, from->config);
		code = read_latency(m, latency, &why);
	}
	fclose(latency);
	fclose(model);
	return code ? error_set(err, code, "%s: the saved latency of %s version %llu: %s",
			      w->repository, m->name, (unsigned long long)version, why.text)
		    : 0;
}

int serving_load(struct serving *w, const char *repository, struct error *err)
{
	struct store *store;
	struct store_models all = { 0 };
	w->repository = repository;
	int code = store_open(repository, &store, err);
	if (code)
		return code;
	code = store_scan(store, &all, err);
	for (size_t i = 0; !code && i < all.models.n; i++)
		code = add_model(w, store, &all.models.v[i], err);
	if (!code && !w->models.n)
		code = error_set(err, -ENOENT,
			"%s: no model has a saved latency. Run weir serve %s once: it measures and saves them",
			repository, repository);
	store_models_free(&all);
	store_close(store);
	return code;
}

static struct serving_model *find_model(struct serving *w, const char *name, size_t n)
{
	for (size_t i = 0; i < w->models.n; i++)
		if (strlen(w->models.v[i].name) == n && !strncmp(w->models.v[i].name, name, n))
			return &w->models.v[i];
	return NULL;
}

/* "300" or "300/s". */
static bool parse_rate(const char *text, double *ret)
{
	char *end;
	*ret = strtod(text, &end);
	return *text >= '0' && *text <= '9' && (!*end || !strcmp(end, "/s")) && *ret > 0 &&
	       *ret <= RATE_MOST;
}

/* Lines without a name go to the models in turn. */
static bool read_line(struct serving *w, char *line, size_t *turn)
{
	char *name, *end;
	const double seconds = strtod(line, &end);
	if (end == line || !(seconds >= 0) || !(seconds < 1e7))
		return false;
	name = end + strspn(end, " \t,");
	name[strcspn(name, " \t\r\n")] = 0;
	struct serving_model *m =
		*name ? find_model(w, name, strlen(name)) : &w->models.v[(*turn)++ % w->models.n];
	if (!m)
		return false;
	m->is_named = true;
	*(array_push(&m->arrivals)) = (uint64_t)(seconds * 1e9);
	return true;
}

static int read_file(struct serving *w, const char *path, struct error *err)
{
	char line[512];
	unsigned number = 0;
	size_t turn = 0;
	FILE *in = fopen(path, "re");
	if (!in)
		return error_set(err, -errno,
			"--arrivals=%s: give poisson:300, MODEL=poisson:300, or a file (%s)", path,
			strerror(errno));
	bool right = true;
	while (right && fgets(line, sizeof line, in)) {
		number++;
		right = *line == '#' || *line == '\n' || read_line(w, line, &turn);
	}
	fclose(in);
	if (!right)
		return error_set(err, -EINVAL,
			"%s:%u: give SECONDS, or SECONDS MODEL with a model of the repository",
			path, number);
	for (size_t i = 0; i < w->models.n; i++)
		SORT(w->models.v[i].arrivals, order_u64);
	return 0;
}

int serving_arrive(struct serving *w, const char *how, struct error *err)
{
	const char *poisson = strstr(how, "poisson:");
	if (!poisson)
		return read_file(w, how, err);
	double rate;
	if (!parse_rate(poisson + strlen("poisson:"), &rate))
		return error_set(err, -EINVAL,
			"--arrivals=%s: give requests a second, poisson:300 for example", how);
	if (poisson == how) {
		w->rest = rate;
		return 0;
	}
	struct serving_model *m = find_model(w, how, (size_t)(poisson - how) - 1);
	if (poisson[-1] != '=' || !m)
		return error_set(err, -EINVAL,
			"--arrivals=%s: %s has no such model with a saved latency", how,
			w->repository);
	m->is_named = true;
	m->simulated.rate = rate;
	return 0;
}

static void share_rest(struct serving *w)
{
	size_t others = 0;
	for (size_t i = 0; i < w->models.n; i++)
		others += !w->models.v[i].is_named;
	array_each(struct serving_model, m, w->models) {
		if (!m->is_named)
			m->simulated.rate = w->rest / (double)others;
		if (!m->arrivals.n)
			continue;
		m->simulated.arrivals = m->arrivals.v;
		m->simulated.arrival_count = m->arrivals.n;
		const double last = (double)m->arrivals.v[m->arrivals.n - 1] / 1e9;
		w->seconds = last >= w->seconds ? last + 1e-9 : w->seconds;
	}
	if (!(w->seconds > 0))
		w->seconds = SECONDS_DEFAULT;
}

int serving_run(struct serving *w, struct error *err)
{
	struct simulated_model *models = xcalloc(w->models.n, sizeof *models);
	share_rest(w);
	for (size_t i = 0; i < w->models.n; i++)
		models[i] = w->models.v[i].simulated;
	for (int p = 0; !w->policy_count && p < BATCH_POLICIES; p++)
		w->policies[p] = (enum batch_policy)p;
	w->policy_count = w->policy_count ? w->policy_count : BATCH_POLICIES;
	for (size_t p = 0; p < w->policy_count; p++) {
		w->results[p] = xcalloc(w->models.n + 1, sizeof *w->results[p]);
		simulate(&(struct simulation){ .policy = w->policies[p],
				 .models = models,
				 .model_count = (uint32_t)w->models.n,
				 .seconds = w->seconds,
				 .seed = w->seed },
			w->results[p]);
	}
	free(models);
	if (!w->results[0][w->models.n].arrived)
		return error_set(err, -EINVAL, "no request arrives in %g s", w->seconds);
	return 0;
}

void serving_fini(struct serving *w)
{
	for (size_t p = 0; p < BATCH_POLICIES; p++) {
		if (w->results[p])
			simulated_fini(w->results[p], (uint32_t)w->models.n);
		free(w->results[p]);
	}
	for (size_t i = 0; i < w->models.n; i++) {
		free(w->models.v[i].name);
		free(w->models.v[i].typical_ns);
		array_free(&w->models.v[i].arrivals);
	}
	for (size_t i = 0; i < w->left_out.n; i++)
		free(w->left_out.v[i]);
	array_free(&w->models, &w->left_out);
}
