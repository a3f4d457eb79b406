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

static void links_of_models_and_versions_stay_inside(void **state)
{
	run("cd repository; mkdir -p good/1 real ../away/1; echo g >good/1/f; echo a >../away/1/f\n"
	    "mv good real/good; ln -s real/good good; ln -s ../away away; ln -s $PWD/real/good abs\n"
	    "mkdir bad config; ln -s ../../away/1 bad/1; mkdir config/1; echo f >config/1/f\n"
	    "ln -s ../../outside config/config.pbtxt");
	scan();
	assert_null(get("good")->problem);
	check_file("good", 1, "f", "g\n");
	check_problem("away", REPOSITORY "/away can't be read: " OUT);
	check_problem("abs", REPOSITORY "/abs can't be read: " OUT);
	check_problem("bad", REPOSITORY "/bad/1 can't be opened: " OUT);
	check_problem("config", REPOSITORY "/config/config.pbtxt can't be read: " OUT);
}

/* The fingerprint of a model after each of the commands is new; `command` runs in its folder. */
static void check_change(const char *command, bool versions, bool config)
{
	char whole[400];
	scan();
	const struct store_model before = *get("m");
	const uint64_t version = before.versions.v[0].fingerprint;
	snprintf(whole, sizeof whole, "cd repository/m; %s", command);
	run(whole);
	scan();
	const struct store_model *m = get("m");
	assert_int_equal(m->fingerprint != before.fingerprint, versions || config);
	assert_int_equal(m->versions.v[0].fingerprint != version, versions);
	assert_int_equal(m->config_fingerprint != before.config_fingerprint, config);
	assert_int_equal(m->settled, !versions && !config);
	scan();
	assert_true(get("m")->settled);
}

static void every_change_is_seen_and_waited_for(void **state)
{
	run("cd repository; mkdir -p m/1 other/1; echo one >m/1/model.onnx; echo labels >m/labels\n"
	    "echo o >other/1/f");
	check_change("true", false, false);
	check_change("echo more >>1/model.onnx", true, false);
	/* The same size and time of change, once in place and once by another file. */
	check_change(
		"touch -r 1/model.onnx ref; tr o e <1/model.onnx >../t; cat ../t >1/model.onnx\n"
		"touch -r ref 1/model.onnx; rm ref ../t",
		true, false);
	check_change("cp -p 1/model.onnx x; mv x 1/model.onnx", true, false);
	check_change("mkdir 1/data", true, false);
	check_change("echo w >1/data/weights", true, false);
	check_change("mv 1/data/weights 1/data/w", true, false);
	check_change("rm -r 1/data", true, false);
	check_change("echo 'max_batch_size: 2' >config.pbtxt", false, true);
	check_change("echo label >>labels", false, true);
	check_change("mkdir warmup; echo w >warmup/w", false, true);
	check_change("ln -s 1 2; rm 2; echo x >../other/1/f; touch .hidden", false, false);
	run("cp -r repository/m/1 repository/m/2");
	scan();
	assert_false(get("m")->settled);
	assert_int_equal(get("m")->versions.n, 2);
}

static void a_side_file_is_found(void **state)
{
	int fd = -1;
	char *path = NULL;
	run("mkdir -p repository/m/warmup; echo l >repository/m/labels.txt; echo w "
	    ">repository/m/warmup/w");
	assert_int_equal(store_side_file(store, "m", "labels.txt", &fd, &path, &err), 0);
	assert_string_equal(path, REPOSITORY "/m/labels.txt");
	close(fd);
	free(path);
	assert_int_equal(store_side_file(store, "m", "warmup/w", &fd, &path, &err), 0);
	close(fd);
	free(path);
	assert_int_equal(store_side_file(store, "m", "../m/labels.txt", &fd, &path, &err), -EINVAL);
}

static int override(const char *model, const char *json)
{
	json_t *parameters = json_loads(json, 0, NULL);
	assert_non_null(parameters);
	err.text[0] = '\0';
	const int e = store_override(store, model, parameters, &err);
	json_decref(parameters);
	return e;
}

static void a_load_request_brings_files_and_configuration(void **state)
{
	run("mkdir -p repository/m/3; echo disk >repository/m/3/f");
	scan();
	const uint64_t before = get("m")->fingerprint;
	assert_int_equal(override("m", "{\"config\": \"{\\\"max_batch_size\\\": 7}\"}"), 0);
	scan();
	assert_int_equal(get("m")->config->max_batch_size, 7);
	assert_int_equal(get("m")->versions.v[0].number, 3);
	assert_true(get("m")->fingerprint != before);
	check_file("m", 3, "f", "disk\n");

	assert_int_equal(override("m", "{\"config\": \"{}\", \"file:1/f\": \"aGVsbG8=\","
				       "\"file:2/f\": \"\"}"),
		0);
	scan();
	assert_int_equal(get("m")->versions.n, 2);
	assert_int_equal(get("m")->config->max_batch_size, 0);
	assert_true(get("m")->settled && get("m")->is_inline);
	assert_true(get("m")->versions.v[1].selected);
	check_file("m", 1, "f", "hello");
	check_file("m", 1, "f", "hello"); /* each has a position of its own */
	check_file("m", 2, "f", "");
	check_no_file("m", "g", -ENOENT, "the load request of m has no file 1/g");

	/* A model that is in no folder, and one that is gone again. */
	assert_int_equal(override("new", "{\"config\": {}, \"file:1/f\": \"aGk\"}"), 0);
	scan();
	assert_int_equal(found.models.n, 2);
	check_file("new", 1, "f", "hi");
	assert_int_equal(override("new", "{}"), 0);
	assert_int_equal(store_override(store, "m", NULL, &err), 0);
	scan();
	assert_int_equal(found.models.n, 1);
	assert_int_equal(get("m")->fingerprint, before);
	check_file("m", 3, "f", "disk\n");
}

static void a_load_request_that_is_wrong_changes_nothing(void **state)
{
	static const struct {
		const char *json, *message;
		int code;
	} rows[] = {
		{ "{\"config\": \"{\"}",
			"config of the load request of m: string or '}' expected near "
			"end of file in line 1",
			-EINVAL },
		{ "{\"config\": \"{\\\"name\\\": 1}\"}",
			"config of the load request of m: name takes no number", -EINVAL },
		{ "{\"file:1/f\": \"\"}", "the load request of m has files and no config",
			-EINVAL },
		{ "{\"config\": \"{}\", \"file:1/f\": \"a\"}",
			"file:1/f of the load request of m is no base64", -EINVAL },
		{ "{\"config\": \"{}\", \"file:1/f\": \"aa!a\"}",
			"file:1/f of the load request of m is no base64", -EINVAL },
		{ "{\"config\": \"{}\", \"file:1/f\": 1}",
			"file:1/f of the load request of m is no string", -EINVAL },
		{ "{\"config\": \"{}\", \"file:0/f\": \"\"}",
			"the load request of m has file:0/f; it is file:VERSION/NAME", -EINVAL },
		{ "{\"config\": \"{}\", \"file:1/../f\": \"\"}",
			"the load request of m has file:1/../f; it is file:VERSION/NAME", -EINVAL },
		{ "{\"config\": \"{}\", \"file:1/\": \"\"}",
			"the load request of m has file:1/; it is file:VERSION/NAME", -EINVAL },
		{ "{\"config\": \"{}\", \"file:f\": \"\"}",
			"the load request of m has file:f; it is file:VERSION/NAME", -EINVAL },
	};
	assert_int_equal(override("m", "{\"config\": \"{}\", \"file:1/f\": \"b25l\"}"), 0);
	scan();
	const uint64_t before = get("m")->fingerprint;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(override("m", rows[i].json), rows[i].code);
		assert_string_equal(err.text, rows[i].message);
	}
	assert_int_equal(override("../m", "{}"), -EINVAL);
	/* Three files that have more bytes together than there may be. */
	const size_t bytes = STORE_FILE_BYTES / 9 * 4 + 8;
	char *text = malloc(bytes);
	assert_non_null(text);
	memset(text, 'A', bytes);
	json_t *file = json_stringn_nocheck(text, bytes);
	free(text);
	json_t *large = json_pack("{s:s, s:O, s:O, s:o}", "config", "{}", "file:1/f", file,
		"file:1/g", file, "file:2/f", file);
	assert_int_equal(store_override(store, "m", large, &err), -EMSGSIZE);
	assert_string_equal(
		err.text, "the files of the load request of m have more than 268435456 bytes");
	json_decref(large);
	scan();
	assert_int_equal(get("m")->fingerprint, before);
	check_file("m", 1, "f", "one");
}

static void latencies_are_kept_for_their_owner(void **state)
{
	struct stat st;
	char text[16] = "";
	assert_null(store_kept_open(store, STORE_LATENCY, "m", 1));
	assert_int_equal(store_kept_write(store, STORE_LATENCY, "m", 1, "1 200\n", 6), 0);
	assert_int_equal(store_kept_write(store, STORE_LATENCY, "m", 1, "1 300\n", 6), 0);
	FILE *in = store_kept_open(store, STORE_LATENCY, "m", 1);
	assert_non_null(in);
	assert_non_null(fgets(text, sizeof text, in));
	fclose(in);
	assert_string_equal(text, "1 300\n");
	assert_int_equal(stat(REPOSITORY "/.weir", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(REPOSITORY "/.weir/latency-m-1", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	run("test \"$(ls -A repository/.weir)\" = latency-m-1");
	assert_null(store_kept_open(store, STORE_LATENCY, "../m", 1));
	scan();
	assert_int_equal(found.models.n, 0);
	/* A folder elsewhere is neither read nor written. */
	run("mv repository/.weir kept; ln -s ../kept repository/.weir");
	assert_null(store_kept_open(store, STORE_LATENCY, "m", 1));
	assert_true(store_kept_write(store, STORE_LATENCY, "m", 1, "", 0) < 0);
	run("rm repository/.weir; touch repository/.weir");
	assert_null(store_kept_open(store, STORE_LATENCY, "m", 1));
	assert_int_equal(store_kept_write(store, STORE_LATENCY, "m", 1, "", 0), -ENOTDIR);
}

static void what_cannot_be_read_is_said(void **state)
{
	struct store *other = NULL;
	assert_int_equal(store_open("store.d/none", &other, &err), -ENOENT);
	assert_string_equal(err.text, "store.d/none can't be opened: No such file or directory");
	assert_int_equal(store_open("store.d/outside", &other, &err), -ENOTDIR);
	run("mkdir -p repository/m/1 repository/n/1; echo f >repository/m/1/f; echo f >repository/n/1/f\n"
	    "touch repository/m/config.pbtxt; chmod 0 repository/m/config.pbtxt repository/n\n"
	    "head -c 1100000 /dev/zero | tr '\\0' '\\n' >big; mkdir -p repository/b/1; echo f >repository/b/1/f\n"
	    "mv big repository/b/config.pbtxt");
	scan();
	check_problem("b", REPOSITORY "/b/config.pbtxt can't be read: it has more than 1 MiB");
	if (geteuid() != 0) {
		check_problem("m", REPOSITORY "/m/config.pbtxt can't be read: Permission denied");
		check_problem("n", REPOSITORY "/n can't be read: Permission denied");
		run("chmod 500 repository");
		assert_int_equal(store_kept_write(store, STORE_LATENCY, "m", 1, "", 0), -EACCES);
		assert_null(store_kept_open(store, STORE_LATENCY, "m", 1));
		run("chmod 700 repository");
	}
	run("chmod 700 repository/n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(models_are_sorted_and_have_their_versions),
		TEST(the_version_policy_selects),
		TEST(a_problem_is_a_sentence),
		TEST(no_path_leaves_the_repository),
		TEST(links_of_models_and_versions_stay_inside),
		TEST(every_change_is_seen_and_waited_for),
		TEST(a_side_file_is_found),
		TEST(a_load_request_brings_files_and_configuration),
		TEST(a_load_request_that_is_wrong_changes_nothing),
		TEST(latencies_are_kept_for_their_owner),
		TEST(what_cannot_be_read_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
