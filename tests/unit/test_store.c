/* A repository of models on the disk: what is found, what changed, and what is never opened. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store.h"

#define REPOSITORY "store.d/repository"

static struct error err;
static struct store *store;
static struct store_models found;

static void run(const char *command)
{
	char whole[1024];
	snprintf(whole, sizeof whole, "cd store.d && { %s\n}", command);
	FILE *shell = popen(whole, "r");
	assert_non_null(shell);
	assert_int_equal(pclose(shell), 0);
}

static int begin(void **state)
{
	FILE *shell = popen("chmod -R u+w store.d 2>/dev/null; rm -rf store.d; "
			    "mkdir -p store.d/repository; echo secret >store.d/outside",
		"r");
	return !shell || pclose(shell) || store_open(REPOSITORY, &store, &err);
}

static int end(void **state)
{
	store_models_free(&found);
	store_close(store);
	return 0;
}

static void scan(void)
{
	store_models_free(&found);
	assert_int_equal(store_scan(store, &found, &err), 0);
}

static struct store_model *get(const char *name)
{
	for (size_t i = 0; i < found.models.n; i++)
		if (!strcmp(found.models.v[i].name, name))
			return &found.models.v[i];
	fail_msg("there is no model %s", name);
	return NULL;
}

static void check_problem(const char *name, const char *problem)
{
	const struct store_model *m = get(name);
	assert_non_null(m->problem);
	assert_string_equal(m->problem, problem);
	assert_null(m->config);
}

static void check_file(const char *model, uint64_t version, const char *name, const char *content)
{
	int fd = -1;
	char *path = NULL, text[64] = "";
	const int e = store_model_file(store, model, version, name, &fd, &path, &err);
	if (e)
		print_error("%s\n", err.text);
	assert_int_equal(e, 0);
	assert_true(read(fd, text, sizeof text - 1) >= 0);
	assert_string_equal(text, content);
	close(fd);
	free(path);
}

static void check_no_file(const char *model, const char *name, int want, const char *message)
{
	int fd = -1;
	char *path = NULL;
	const int e = store_model_file(store, model, 1, name, &fd, &path, &err);
	assert_string_equal(err.text, message);
	assert_int_equal(e, want);
	assert_int_equal(fd, -1);
	assert_null(path);
}

static void models_are_sorted_and_have_their_versions(void **state)
{
	run("cd repository; mkdir -p b/1 b/10 b/9 b/02 b/0 b/-3 b/x a/1 .hidden/1; touch file\n"
	    "for v in 1 10 9; do echo m$v >b/$v/model.onnx; done; echo a >a/1/model.onnx\n"
	    "echo 'max_batch_size: 4' >b/config.pbtxt");
	scan();
	assert_int_equal(found.models.n, 2);
	assert_string_equal(found.models.v[0].name, "a");
	const struct store_model *b = get("b");
	assert_null(b->problem);
	assert_true(b->settled);
	assert_int_equal(b->config->max_batch_size, 4);
	assert_string_equal(b->config->name, "b");
	assert_int_equal(b->versions.n, 3);
	assert_int_equal(b->versions.v[1].number, 9);
	assert_false(b->versions.v[1].selected);
	assert_int_equal(b->versions.v[2].number, 10);
	assert_true(b->versions.v[2].selected);
	check_file("b", 10, "model.onnx", "m10\n");
}

static void the_version_policy_selects(void **state)
{
	run("cd repository; for v in 1 2 5; do mkdir -p m/$v; echo $v >m/$v/f; done\n"
	    "echo 'version_policy { latest { num_versions: 2 } }' >m/config.pbtxt");
	scan();
	assert_false(get("m")->versions.v[0].selected);
	assert_true(get("m")->versions.v[1].selected && get("m")->versions.v[2].selected);
	run("echo 'version_policy { all {} }' >repository/m/config.pbtxt");
	scan();
	assert_true(get("m")->versions.v[0].selected && get("m")->versions.v[1].selected);
	run("echo 'version_policy: { specific: { versions: [1, 5, 7] } }' >repository/m/config.pbtxt");
	scan();
	assert_true(get("m")->versions.v[0].selected && get("m")->versions.v[2].selected);
	assert_false(get("m")->versions.v[1].selected);
	assert_string_equal(get("m")->warnings,
		REPOSITORY "/m has not all versions that its version_policy lists\n");
	run("echo 'version_policy: { specific: { versions: 7 } }' >repository/m/config.pbtxt");
	scan();
	check_problem("m", REPOSITORY "/m has none of the versions that its version_policy lists");
}

static void a_problem_is_a_sentence(void **state)
{
	run("cd repository; mkdir -p none empty/1 broken/1 named/1 missing/1 'a b'/1\n"
	    "echo 'max_batch_size: x' >broken/config.pbtxt; echo m >broken/1/model.onnx\n"
	    "echo 'name: \"other\"' >named/config.pbtxt; echo m >named/1/model.onnx\n"
	    "echo 'default_model_filename: \"m.onnx\"' >missing/config.pbtxt\n"
	    "mkfifo none/config.pbtxt");
	scan();
	check_problem("empty", REPOSITORY "/empty/1 has no model file");
	check_problem("broken",
		REPOSITORY "/broken/config.pbtxt:1: max_batch_size takes a number, not x");
	check_problem("named", REPOSITORY "/named/config.pbtxt says that the model's name is "
					  "other, and its folder is named");
	check_problem("missing", "the model's file " REPOSITORY
				 "/missing/1/m.onnx can't be opened: No such file or directory");
	check_problem("a b", "the folder " REPOSITORY
			     "/a b is no model: a name has letters, digits, ., _ and -");
	check_problem("none", REPOSITORY "/none/config.pbtxt can't be read: Invalid argument");
	run("rm repository/none/config.pbtxt");
	scan();
	check_problem("none", REPOSITORY "/none has no version: put the model's file into a folder "
					 "with a number, for example 1");
}

#define OUT                                                                                        \
	"a symbolic link or .. leads out of the repository; put the files into it, or bind-mount " \
	"them there"

static void no_path_leaves_the_repository(void **state)
{
	run("cd repository; mkdir -p m/1 other; echo in >other/in; echo m >m/1/model.onnx\n"
	    "ln -s ../../other/in m/1/inside; ln -s ../../../outside m/1/outside\n"
	    "ln -s /etc/hostname m/1/absolute; ln -s /proc/self/cwd m/1/magic; ln -s l m/1/l\n"
	    "ln -s ../.. m/1/up; ln -s ../m/1 m/2");
	check_file("m", 1, "model.onnx", "m\n");
	check_file("m", 1, "inside", "in\n");
	check_file("m", 2, "model.onnx", "m\n");
	check_no_file("m", "../../other/in", -EINVAL,
		"the file ../../other/in of model m is not in its folder");
	check_no_file("m", "x/..", -EINVAL, "the file x/.. of model m is not in its folder");
	check_no_file("m", "/etc/hostname", -EINVAL,
		"the file /etc/hostname of model m is not in its folder");
	check_no_file("m", "", -EINVAL, "the file  of model m is not in its folder");
	check_no_file("..", "outside", -EINVAL, ".. is no name of a model");
	check_no_file("m/../m", "model.onnx", -EINVAL, "m/../m is no name of a model");
	check_no_file("m", "outside", -EXDEV, REPOSITORY "/m/1/outside can't be opened: " OUT);
	check_no_file("m", "absolute", -EXDEV, REPOSITORY "/m/1/absolute can't be opened: " OUT);
	check_no_file("m", "magic/x", -EXDEV, REPOSITORY "/m/1/magic/x can't be opened: " OUT);
	check_no_file("m", "up/../outside", -EINVAL,
		"the file up/../outside of model m is not in its folder");
	check_no_file("m", "l", -ELOOP,
		REPOSITORY "/m/1/l can't be opened: its symbolic links lead to no file");
	check_no_file("m", "none", -ENOENT,
		REPOSITORY "/m/1/none can't be opened: No such file or directory");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(models_are_sorted_and_have_their_versions),
		TEST(the_version_policy_selects),
		TEST(a_problem_is_a_sentence),
		TEST(no_path_leaves_the_repository),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
