/* Files that appear when they are whole. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/newfile.h"

#define DIRECTORY "newfile.d"
#define PATH      DIRECTORY "/out"

static int begin(void **state)
{
	unlink(PATH);
	unlink(PATH ".unfinished");
	rmdir(DIRECTORY);
	return mkdir(DIRECTORY, 0700);
}

static int entries(void)
{
	int n = 0;
	DIR *d = opendir(DIRECTORY);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void check_content(const char *want)
{
	char text[64] = "";
	struct stat st;
	FILE *f = fopen(PATH, "r");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, sizeof text - 1, f), strlen(want));
	fclose(f);
	assert_string_equal(text, want);
	assert_int_equal(stat(PATH, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(entries(), 1);
}

static void put(const char *text, int how)
{
	struct newfile f;
	assert_int_equal(newfile_open(&f, PATH), 0);
	fputs(text, f.out);
	assert_int_equal(newfile_close(&f, how), how);
}

static void a_file_is_there_when_it_is_whole_and_replaces_another(void **state)
{
	umask(0);
	put("one", 0);
	check_content("one");
	put("another", 0);
	check_content("another");
	put("broken", -EIO);
	check_content("another");
}

static void nothing_is_made_where_nothing_can_be(void **state)
{
	struct newfile f;
	const int e = newfile_open(&f, "newfile.absent/out");
	assert_int_equal(e, -ENOENT);
	assert_int_equal(newfile_close(&f, e), -ENOENT);
}

/* As its maker is killed in the middle. */
static void leave(int (*open_file)(struct newfile *f, const char *path))
{
	const pid_t child = fork();
	if (!child) {
		struct newfile f;
		if (!open_file(&f, PATH))
			fputs("half", f.out);
		raise(SIGKILL);
	}
	waitpid(child, NULL, 0);
}

static void nothing_stays_of_a_maker_that_was_killed(void **state)
{
	leave(newfile_open);
	const int fd = open(DIRECTORY, O_TMPFILE | O_RDWR, 0600);
	assert_true(fd < 0 || entries() == 0);
	close(fd);
	leave(newfile_open_named); /* whose file has a name, that the next one takes */
	put("whole", 0);
	check_content("whole");
	leave(newfile_open_named);
	struct newfile f;
	assert_int_equal(newfile_open_named(&f, PATH), 0);
	assert_int_equal(newfile_close(&f, 0), 0);
	check_content("");
}

/* Not one that somebody is at. */
static void two_makers_do_not_take_each_other_s_file(void **state)
{
	struct newfile one, two;
	assert_int_equal(newfile_open_named(&one, PATH), 0);
	assert_int_equal(newfile_open_named(&two, PATH), -EBUSY);
	assert_int_equal(newfile_close(&two, -EBUSY), -EBUSY);
	assert_int_equal(newfile_close(&one, 0), 0);
	check_content("");
}

static void a_link_is_replaced_and_not_followed(void **state)
{
	assert_int_equal(symlink("/dev/full", PATH ".unfinished"), 0);
	struct newfile f;
	assert_int_equal(newfile_open_named(&f, PATH), -ELOOP);
	assert_int_equal(newfile_close(&f, -ELOOP), -ELOOP);
	unlink(PATH ".unfinished");
	assert_int_equal(symlink("elsewhere", PATH), 0);
	put("here", 0);
	check_content("here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_file_is_there_when_it_is_whole_and_replaces_another, begin),
		cmocka_unit_test_setup(nothing_is_made_where_nothing_can_be, begin),
		cmocka_unit_test_setup(nothing_stays_of_a_maker_that_was_killed, begin),
		cmocka_unit_test_setup(two_makers_do_not_take_each_other_s_file, begin),
		cmocka_unit_test_setup(a_link_is_replaced_and_not_followed, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
