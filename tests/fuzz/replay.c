/*
 * Runs a fuzz target over the files of a directory (or over the files named), once each:
 * what libFuzzer does with a corpus, without libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	struct stat st;
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	int rc = 1;

	if (!file || fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		goto out;
	data = malloc((size_t)st.st_size + 1);
	if (!data || fread(data, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		goto out;
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	rc = 0;
out:
	if (rc)
		fprintf(stderr, "replay: cannot read %s\n", path);
	free(data);
	if (file)
		fclose(file);
	return rc;
}

static int replay_directory(const char *path, int *ret_count)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[4096];
	int rc = 0;

	if (!directory)
		return replay(path);
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		rc |= replay(name);
		++*ret_count;
	}
	closedir(directory);
	return rc;
}

int main(int argc, char **argv)
{
	int rc = 0, count = 0;

	for (int i = 1; i < argc; i++)
		rc |= replay_directory(argv[i], &count);
	printf("%d inputs\n", count);
	return rc || !count;
}
