/* Cohort: private k-means for programs in C, C++ and whatever calls C.
 *
 *     cohort_engine *engine;
 *     cohort_model *model;
 *     cohort_call call = COHORT_CALL;
 *     cohort_data data = {.kind = COHORT_FLOAT32, .data = rows, .rows = n, .columns = d};
 *
 *     if (cohort_engine_new(0, &engine, &call) ||
 *         cohort_fit(engine, &data, 1, NULL, "{\"k\": 8, \"epsilon\": 1, \"lower\": [0], \"upper\": [100]}", &call, &model)) {
 *         fprintf(stderr, "%s\n", call.text);
 *         return 1;
 *     }
 *     cohort_model_centroids(model, centroids, 8 * d);
 *     cohort_model_free(model);
 *     cohort_engine_free(engine);
 *
 * Every function that can fail returns a cohort_status, 0 for success, and writes a line
 * "what: why: what to do" to the call. There is no state but the handles: an engine has the
 * worker threads, records and models are data.
 *
 * Threads: all functions may be called from any thread, also with the same handles at the same
 * time, but for freeing a handle while it is in use. Work on one engine takes turns on its threads.
 *
 * Memory: what you hand over stays yours, and is read until the function returns. What the library
 * hands over is freed with the function that its comment names. A handle that was freed, or is none,
 * is refused with COHORT_BAD_HANDLE.
 *
 * fork: the library's threads do not exist in a child that was forked after the library was loaded. Every
 * function returns COHORT_FORKED there, and frees nothing. Start children by fork and exec (posix_spawn), or load
 * the library in them.
 *
 * Signals: the library runs on Go, which handles SIGSEGV, SIGBUS, SIGFPE and SIGURG of its own threads and hands on those of
 * others to the handlers that were there before it was loaded. Threads of yours need no more stack than usual.
 */
#ifndef COHORT_H
#define COHORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It goes up when what is here changes its meaning, or goes. A program that loads the
 * library by itself compares it with cohort_abi_version(). */
#define COHORT_ABI_VERSION 1

/* The version of the library that this file belongs to. */
#define COHORT_VERSION "0.1.0"

typedef enum cohort_status {
    COHORT_OK = 0,
    COHORT_FAILED = 1,        /* the run failed: the data's content, the machine */
    COHORT_WRONG_REQUEST = 2, /* an option, a range, a combination of them */
    COHORT_BUDGET = 3,        /* a privacy budget cannot pay */
    COHORT_CANCELLED = 4,     /* the cancel flag was set, or progress returned non-zero */
    COHORT_BAD_HANDLE = 5,    /* NULL, freed, or of another kind */
    COHORT_FORKED = 6         /* this process was forked after the library was loaded */
} cohort_status;

typedef struct cohort_engine cohort_engine;   /* worker threads */
typedef struct cohort_records cohort_records; /* data, ready to be clustered as often as wanted */
typedef struct cohort_model cohort_model;     /* what a fit has learned */

/* Progress of a fit: done of total rounds (0 if unknown) of the method. It is called on a thread of the library, never by two
 * at a time for one call, and holds up the fit while it runs. Return non-zero to cancel. */
typedef int32_t (*cohort_progress)(void *user, int64_t done, int64_t total);

/* What a call needs beside its arguments, and what it says. NULL may stand for one; then nobody learns
 * more than the status. A call is used by one function at a time. */
typedef struct cohort_call {
    /* While the function runs, set *cancel to non-zero from any thread, or a signal handler: it then
     * returns COHORT_CANCELLED within one shard of work (milliseconds). NULL: no flag. */
    const volatile int32_t *cancel;
    cohort_progress progress; /* NULL: none */
    void *user;
    int32_t status;   /* what the function returned */
    char text[1020];  /* why, "" after success; cut off if longer */
} cohort_call;

#define COHORT_CALL {NULL, NULL, NULL, 0, ""}

/* Where records are. */
typedef enum cohort_kind {
    COHORT_FLOAT32 = 1,      /* data: const float *, column j of record i at i*row_stride + j*column_stride */
    COHORT_FLOAT64 = 2,      /* data: const double *, likewise */
    COHORT_ARROW_STREAM = 3, /* data: struct ArrowArrayStream *, which the function releases, whatever it returns */
    COHORT_FILE = 4          /* data: a path as const char *: CSV and other text, .npy, MNIST idx, .gz of those */
} cohort_kind;

typedef struct cohort_data {
    int32_t kind; /* cohort_kind */
    int32_t reserved;
    const void *data;
    int64_t rows, columns;             /* of numbers in memory */
    int64_t row_stride, column_stride; /* in numbers, not bytes; may be negative; both 0: row after row without gaps */
    const char *const *names;          /* of the columns, or NULL */
} cohort_data;

/* COHORT_ABI_VERSION of the library. */
uint32_t cohort_abi_version(void);

/* The library's version, such as "0.1.0". It is not freed. */
const char *cohort_version(void);

/* All methods with what they are and their options, as JSON. Free it with cohort_free. */
int32_t cohort_methods(char **json, cohort_call *call);

/* Frees what a function returned as char *. */
void cohort_free(char *text);

/* An engine with so many threads; 0: one for each core. */
int32_t cohort_engine_new(int32_t workers, cohort_engine **engine, cohort_call *call);
void cohort_engine_free(cohort_engine *engine);

/* Reads the records of one holder, or of several: each is a client, or with "holders": "columns" a party that has some columns of
 * all records. weights has one number, 0 or more, for each record, or is NULL. Methods with a budget that take them
 * (hybrid, sulloyd, relative, lsf, eugkm, evolve) do so up to a public cap (its setting "weight-cap", 1 by default):
 * heavier ones count as that. The options are a JSON object, NULL or "" for none:
 *   lower, upper    public bounds of the columns, one number each or one for all; without them the data's own, which
 *                   no budget covers
 *   one_scale       true: map all columns by the widest one's bounds, so that distances are those of the data's own
 *                   units; false: each by its own (default)
 *   unit            true: scale each record to length 1 first, as "settings": {"metric": "cosine"} asks for
 *   fraction_bits   of the grid that coordinates are put on, 16 (22 on one scale and with unit)
 *   holders         "rows" (default) or "columns"
 *   cache           folder that keeps the prepared records of a file, for sets beyond memory
 *   ledger          {"path": file that runs are charged to, "epsilon", "delta", "composition": of a new one,
 *                   "key_file", "anchor"}; without a key file it is as secret as the records, for digests of them
 * Free the records with cohort_records_free. */
int32_t cohort_prepare(cohort_engine *engine, const cohort_data *holders, int32_t count, const double *weights,
                       const char *options, cohort_call *call, cohort_records **records);
int32_t cohort_records_shape(const cohort_records *records, int64_t *rows, int64_t *columns);
void cohort_records_free(cohort_records *records);

/* Clusters records that were prepared. The options are a JSON object:
 *   k               number of clusters, required
 *   method          a name of cohort_methods; by default hybrid with a budget and lloyd without
 *   epsilon, delta  the privacy budget; without epsilon there is none (0 is refused). Delta defaults to 1/(n ln n)
 *   pure            true: delta 0, a pure guarantee
 *   settings        options of the method, by name: {"iterations": 10}
 *   clients         number of clients that one holder's rows are dealt to, 1
 *   parties         columns of each party, from 0, of one holder's records: [[0, 2], [1, 3]]
 *   start           k rows of first centroids
 *   seed            makes the run a simulation: reproducible, hence not private
 *   ordered         true: clusters are numbered by their centroids, coordinate by coordinate
 *   no_labels       true: labels are not computed
 * Free the model with cohort_model_free. */
int32_t cohort_fit_records(cohort_engine *engine, cohort_records *records, const char *options,
                           cohort_call *call, cohort_model **model);

/* cohort_prepare and cohort_fit_records in one, with the options of both; a method over columns takes several holders
 * to hold columns. */
int32_t cohort_fit(cohort_engine *engine, const cohort_data *holders, int32_t count, const double *weights,
                   const char *options, cohort_call *call, cohort_model **model);

/* rows: records of the fit that have labels, 0 if none have. */
int32_t cohort_model_shape(const cohort_model *model, int64_t *k, int64_t *columns, int64_t *rows);

/* The centroids, k rows of so many columns, in the data's own units, to room for so many numbers. */
int32_t cohort_model_centroids(const cohort_model *model, double *centroids, int64_t room);

/* The cluster of each record of the fit, from 0. No budget covers labels: they are for who holds the records. */
int32_t cohort_model_labels(const cohort_model *model, int32_t *labels, int64_t room);
/* The same where the model has them, which spares the copy: one for each of the rows, until the model is freed. NULL if
 * there are none. */
int32_t cohort_model_labels_view(const cohort_model *model, int32_t **labels);

/* The model as JSON: centroids, sizes, bounds, ledger, what cohort_model_load reads. Free it with cohort_free. */
int32_t cohort_model_json(const cohort_model *model, char **json, cohort_call *call);
int32_t cohort_model_load(const char *json, cohort_call *call, cohort_model **model);
void cohort_model_free(cohort_model *model);

/* The cluster of each record of the data, in memory or Arrow, and its distance to the centroid: with one scale in the data's own units,
 * else with each column scaled from its bounds to [-1,1]. labels and distances have room for all records; either may be NULL. */
int32_t cohort_predict(cohort_engine *engine, const cohort_model *model, const cohort_data *data,
                       int32_t *labels, double *distances, cohort_call *call);

#ifdef __cplusplus
}
#endif
#endif
