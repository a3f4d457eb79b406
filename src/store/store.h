/*
 * The repository of models: REPOSITORY/MODEL/[config.pbtxt] and REPOSITORY/MODEL/VERSION/FILE, as
 * Triton lays it out. Nothing outside the folder is ever opened: symbolic links work as long as
 * they are relative and stay in it.
 *
 * A load request may bring a configuration or files of its own. They stay in memory and stand in
 * the place of those in the folder until the next store_override() for that model.
 *
 * Functions return 0 or -errno and a sentence. One thread owns a store.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "store/model_config.h"

#define STORE_FILE_BYTES                                                                           \
	((size_t)256 << 20) /* the most that the files of a load request have together */

struct store_version {
	uint64_t number;
	uint64_t fingerprint; /* of the files in its folder */
	bool selected;        /* by the version policy */
};

struct store_model {
	char *name;
	struct model_config *config;          /* NULL: there is a problem */
	char *problem;                        /* NULL, or why the model can't be served */
	char *warnings;                       /* lines, "" if there are none */
	ARRAY(struct store_version) versions; /* ascending */
	uint64_t fingerprint;                 /* of everything in its folder */
	uint64_t config_fingerprint;          /* of everything but the versions */
	bool settled;   /* nothing changed since the scan before, or this is the first scan */
	bool is_inline; /* a load request brought its files */
};

struct store_models {
	ARRAY(struct store_model) models; /* sorted by name */
};

struct store;

int store_open(const char *directory, struct store **ret, struct error *err);
void store_close(struct store *s);

/* The present models. The caller frees it, and also after it has taken `config` out. */
int store_scan(struct store *s, struct store_models *ret, struct error *err);
void store_models_free(struct store_models *models);

/*
 * Opens the file of a version, or its folder if `filename` is that of one. -ENOENT: there is none.
 * The path is for messages. The caller closes the one and frees the other.
 */
int store_model_file(struct store *s, const char *model, uint64_t version, const char *filename,
	int *ret_fd, char **ret_path, struct error *err);

/* The same for a file in the model's own folder: labels, "warmup/FILE". */
int store_side_file(struct store *s, const char *model, const char *filename, int *ret_fd,
	char **ret_path, struct error *err);

/* Whether a load request brought the model's files. */
bool store_is_inline(const struct store *s, const char *model);

/*
 * The parameters of a load request: "config", a text of JSON, and "file:VERSION/NAME", base64.
 * Without any (parameters may be NULL) the model is again what the folder says.
 */
int store_override(struct store *s, const char *model, const json_t *parameters, struct error *err);

/*
 * A server's files for a version, in REPOSITORY/.weir: its latency, and the tensors that the model
 * itself says (config_put_model). NULL: nothing.
 */
#define STORE_LATENCY "latency"
#define STORE_MODEL   "model"
FILE *store_kept_open(struct store *s, const char *what, const char *model, uint64_t version);

/* Keeps it, whole or not at all. A repository that can't be written to is -EROFS or -EACCES. */
int store_kept_write(struct store *s, const char *what, const char *model, uint64_t version,
	const char *text, size_t n);
