/* How programs that share a GPU come to their segment, and what DIR/sched may be meanwhile. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/segment.h"

static char directory[64], path[96];

static int make_directory(void **state)
{
	strcpy(directory, "/tmp/weir-attach.XXXXXX");
	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof path, "%s/sched", directory);
	return 0;
}

static int remove_directory(void **state)
{
	char arbiter[96];
	snprintf(arbiter, sizeof arbiter, "%s/arbiter", directory);
	unlink(arbiter);
	unlink(path);
	rmdir(path);
	return rmdir(directory);
}

static struct share_file *open_file(void)
{
	const char *why = NULL;
	struct share_file *f = share_open(directory, &why);
	if (why)
		print_message("%s\n", why);
	assert_non_null(f);
	return f;
}

static void is_refused(const char *because)
{
	const char *why = "";
	assert_null(share_open(directory, &why));
	if (!strstr(why, because))
		print_message("'%s' has not '%s'\n", why, because);
	assert_non_null(strstr(why, because));
}

static void write_file(const char *text, size_t bytes, mode_t mode)
{
	unlink(path);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_false(fchmod(fd, mode));
	close(fd);
}

static void two_who_open_it_see_the_same(void **state)
{
	static const uint8_t uuid[16] = { 1, 2, 3 }, other[16] = { 9 };
	struct share_file *a = open_file(), *b = open_file();
	assert_ptr_not_equal(a, b);
	assert_int_equal(share_device(a, uuid, 132), 0);
	assert_int_equal(share_device(b, other, 16), 1);
	assert_int_equal(share_device(b, uuid, 132), 0);
	assert_int_equal(a->devices[0].who.sms, 132);
	share_close(a);
	share_close(b);
}

static void it_is_private(void **state)
{
	struct stat st;
	share_close(open_file());
	assert_false(stat(path, &st));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void it_goes_with_the_last_who_has_it(void **state)
{
	struct share_file *a = open_file(), *b = open_file();
	const uint64_t key = a->identity.key;
	a->arbiter.joined = 7;
	share_close(a);
	a = open_file();
	assert_int_equal(a->identity.key, key);
	share_close(a);
	share_close(b);
	a = open_file();
	assert_int_not_equal(a->identity.key, key);
	assert_int_equal(a->arbiter.joined, 0);
	share_close(a);
}

static void what_a_person_has_set_stays(void **state)
{
	struct share_file *f = open_file();
	strcpy(f->arbiter.policy, "strict");
	f->arbiter.open = 1;
	f->tuning.cap_sms = 12;
	share_keep(f, directory);
	share_close(f);
	f = open_file();
	assert_string_equal(f->arbiter.policy, "strict");
	assert_int_equal(f->arbiter.open, 1);
	assert_int_equal(f->tuning.cap_sms, 12);
	share_close(f);
}

static void a_directory_that_others_may_write_to_is_refused(void **state)
{
	assert_false(chmod(directory, 0777));
	is_refused("others may write");
	assert_false(chmod(directory, 0700));
}

static void another_version_is_refused(void **state)
{
	const uint32_t version = SHARE_VERSION + 1;
	share_close(open_file());
	const int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &version, sizeof version, 8), sizeof version);
	close(fd);
	is_refused("another version");
	unlink(path);
}

static void a_damaged_file_is_refused_with_what_to_do(void **state)
{
	write_file("something else", 14, 0600);
	is_refused("damaged. Remove it");
	write_file("WEIRSHR\n", 8, 0600);
	is_refused("damaged. Remove it");
	unlink(path);
}

/* It ends nobody, and those who have the segment put its name back. */
static void a_file_that_shrinks_harms_nobody(void **state)
{
	static const long sizes[] = { 0, 1, 8, 20, 40 };
	struct share_file *f = open_file();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_false(truncate(path, sizes[i]));
		for (uint32_t k = 0; k < SHARE_SLOTS; k++)
			f->slots[k].work.requests++;
		share_keep(f, directory);
		struct share_file *again = open_file();
		assert_int_equal(again->identity.key, f->identity.key);
		assert_int_equal(again->slots[SHARE_SLOTS - 1].work.requests, i + 1);
		share_close(again);
	}
	assert_false(unlink(path));
	share_keep(f, directory);
	struct share_file *again = open_file();
	assert_int_equal(again->identity.key, f->identity.key);
	share_close(again);
	share_close(f);
}

static void the_name_of_another_segment_stays(void **state)
{
	struct share_file *f = open_file();
	assert_false(unlink(path));
	struct share_file *other = open_file();
	share_keep(f, directory);
	struct share_file *again = open_file();
	assert_int_equal(again->identity.key, other->identity.key);
	share_close(again);
	share_close(other);
	share_close(f);
}

/* In a child: what an arbiter does each tenth of a second. */
static void be_arbiter(const struct share_file *f, int said)
{
	char lock[96];
	snprintf(lock, sizeof lock, "%s/arbiter", directory);
	const int fd = open(lock, O_RDWR | O_CREAT, 0600);
	if (flock(fd, LOCK_EX) || write(said, "x", 1) != 1)
		_exit(1);
	alarm(60);
	for (;;) {
		share_keep(f, directory);
		usleep(1000);
	}
}

static void an_arbiter_mends_it_before_others_begin_anew(void **state)
{
	int said[2];
	char c;
	struct share_file *f = open_file();
	assert_false(pipe(said));
	const pid_t pid = fork();
	if (!pid)
		be_arbiter(f, said[1]);
	assert_int_equal(read(said[0], &c, 1), 1);
	for (int i = 0; i < 50; i++) {
		assert_false(i % 2 ? unlink(path) && errno != ENOENT
				   : truncate(path, i) && errno != ENOENT);
		struct share_file *again = open_file();
		assert_int_equal(again->identity.key, f->identity.key);
		share_close(again);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(said[0]);
	close(said[1]);
	share_close(f);
}

static void what_is_no_file_is_refused_at_once(void **state)
{
	unlink(path);
	assert_false(symlink("/tmp/nowhere", path));
	is_refused("something else has its name");
	assert_false(unlink(path));
	assert_false(mkfifo(path, 0600));
	is_refused("something else has its name");
	assert_false(unlink(path));
	assert_false(mkdir(path, 0700));
	is_refused("something else has its name");
	assert_false(rmdir(path));
}

static void anothers_file_is_refused(void **state)
{
	write_file("", 0, 0622);
	is_refused("others may write to it");
	unlink(path);
	if (geteuid())
		return; /* only root can give a file away */
	write_file("", 0, 0600);
	assert_false(chown(path, 65534, 65534));
	is_refused("another user's");
	unlink(path);
}

/* A file that grows beyond the limit would be a signal. */
static void a_limit_of_file_sizes_is_said(void **state)
{
	int status;
	unlink(path);
	const pid_t pid = fork();
	if (!pid) {
		const char *why = NULL;
		const struct rlimit small = { 16, 16 };
		setrlimit(RLIMIT_FSIZE, &small);
		_exit(share_open(directory, &why) || !strstr(why, "limit"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_who_open_it_see_the_same),
		cmocka_unit_test(it_is_private),
		cmocka_unit_test(it_goes_with_the_last_who_has_it),
		cmocka_unit_test(what_a_person_has_set_stays),
		cmocka_unit_test(a_directory_that_others_may_write_to_is_refused),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(a_damaged_file_is_refused_with_what_to_do),
		cmocka_unit_test(a_file_that_shrinks_harms_nobody),
		cmocka_unit_test(the_name_of_another_segment_stays),
		cmocka_unit_test(an_arbiter_mends_it_before_others_begin_anew),
		cmocka_unit_test(what_is_no_file_is_refused_at_once),
		cmocka_unit_test(anothers_file_is_refused),
		cmocka_unit_test(a_limit_of_file_sizes_is_said),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
