/* The files of a repository, and what load requests bring: see store.h. */
#pragma once

#include "store/store.h"

/* A file that a load request brought; fd is a sealed file in memory. */
struct store_file {
	uint64_t version;
	char *name;
	int fd;
};

struct store_override {
	char *model;
	json_t *config; /* NULL: that of the folder */
	ARRAY(struct store_file) files;
	uint64_t fingerprint; /* a number that no other one has */
};

/* The findings of the scan before. */
struct store_seen {
	char *name;
	uint64_t fingerprint;
};

struct store {
	int fd;
	char *path;
	ARRAY(struct store_override) overrides;
	ARRAY(struct store_seen) seen;
	bool scanned;
	uint64_t count; /* of overrides */
};

/* Opens a path below the directory without ever leaving it; an fd or -errno. */
int store_open_beneath(int directory, const char *path, int flags);

/* A positive number without a zero in front. */
bool store_parse_version(struct slice name, uint64_t *ret);

/* Why it could not be opened, as the end of a sentence. */
const char *store_open_reason(int e);

bool store_is_model_name(const char *name);

struct store_override *store_find_override(const struct store *s, const char *model);
void store_free_override(struct store_override *o);
