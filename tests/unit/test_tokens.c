/* Words of clients, and how fast each may ask. */
#include "unit.h"

#include <stdio.h>

#include "serve/tokens.h"

#define FILE_NAME "tokens.txt"
#define MS        UINT64_C(1000000)

static struct error err;

static int try_open(const char *text, struct tokens **ret)
{
	FILE *out = fopen(FILE_NAME, "w");
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
	return tokens_open(FILE_NAME, ret, &err);
}

static struct tokens *open_tokens(const char *text)
{
	struct tokens *t;
	if (try_open(text, &t))
		fail_msg("%s", err.text);
	return t;
}

static struct token *find(struct tokens *t, const char *said)
{
	return tokens_find(t, slice_of(said));
}

static void each_line_is_a_word(void **state)
{
	struct tokens *t = open_tokens("sesame\r\n\n  open rows=5\nlast");
	assert_non_null(find(t, "Bearer sesame"));
	assert_non_null(find(t, "bearer open"));
	assert_non_null(find(t, "BEARER last"));
	assert_ptr_not_equal(find(t, "Bearer open"), find(t, "Bearer last"));
	static const char *const wrong[] = { "", "Bearer ", "Bearer sesam", "Bearer sesame ",
		"Bearer esame", "Basic sesame", "sesame", "Bearer rows=5" };
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_null(find(t, wrong[i]));
	tokens_free(t);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	static const char *const wrong[] = { "a b", "a requests=0", "a requests=", "a rows=-1",
		"a rows=1000001", "a requests=1 requests=2", "a requests=1x", "a Requests=1" };
	struct tokens *t;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		char text[100];
		snprintf(text, sizeof text, "first\n%s\n", wrong[i]);
		assert_int_not_equal(try_open(text, &t), 0);
		assert_non_null(strstr(err.text, FILE_NAME ": line 2"));
	}
	assert_int_not_equal(try_open(" \n\n", &t), 0);
	assert_int_not_equal(tokens_open("no-such-file", &t, &err), 0);
	assert_non_null(strstr(err.text, "No such file"));
}

static void a_rate_lets_a_second_pass_at_once_and_then_its_share(void **state)
{
	struct tokens *t = open_tokens("w requests=10");
	struct token *w = find(t, "Bearer w");
	uint64_t now = 5000 * MS, retry = 0, passed = 0;
	for (int i = 0; i < 10; i++)
		assert_true(token_take(w, 1, now, &retry));
	assert_false(token_take(w, 1, now, &retry));
	assert_int_equal(retry, 100 * MS);
	assert_false(token_take(w, 1, now + retry - 1, &retry));
	assert_int_equal(retry, 1);
	for (int i = 0; i < 10000; i++, now += MS)
		passed += token_take(w, 1, now, &retry);
	assert_int_equal(passed, 99); /* the first after 100 ms */
	now += 3600000 * MS;
	for (passed = 0; token_take(w, 1, now, &retry);)
		passed++;
	assert_int_equal(passed, 10);
	tokens_free(t);
}

static void rows_count_and_what_they_refuse_is_no_request(void **state)
{
	struct tokens *t = open_tokens("w requests=3 rows=100\nfree");
	struct token *w = find(t, "Bearer w");
	uint64_t now = 5000 * MS, retry = 0;
	assert_true(token_take(w, 90, now, &retry));
	for (int i = 0; i < 5; i++) {
		assert_false(token_take(w, 20, now, &retry));
		assert_int_equal(retry, 100 * MS);
	}
	assert_true(token_take(w, 5, now, &retry));
	assert_true(token_take(w, 5, now, &retry));
	assert_false(token_take(w, 1, now, &retry)); /* the fourth */
	/* More rows than a second has: only after silence, and then nothing for as long as they
	 * last. */
	now += 2000 * MS;
	assert_true(token_take(w, 1000, now, &retry));
	assert_false(token_take(w, 1, now + 9000 * MS, &retry));
	assert_true(token_take(w, 1, now + 9100 * MS, &retry));
	for (int i = 0; i < 100000; i++)
		assert_true(token_take(find(t, "Bearer free"), 1000, now, &retry));
	tokens_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_a_word),
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(a_rate_lets_a_second_pass_at_once_and_then_its_share),
		cmocka_unit_test(rows_count_and_what_they_refuse_is_no_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
