/* The functions of cohort.h. They pass the call on to Go, which has no threads in a child that was forked. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

static volatile int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static int32_t refuse(cohort_call *call) {
    if (call != NULL) {
        call->status = COHORT_FORKED;
        strcpy(call->text, "library: this process was forked after it was loaded, and has none of its threads: "
                           "start processes by spawn, or load the library in the child");
    }
    return COHORT_FORKED;
}

#define ONLY_IN_PARENT(call) \
    if (forked) return refuse(call)

uint32_t cohort_abi_version(void) { return COHORT_ABI_VERSION; }

void cohort_free(char *text) { free(text); }

const char *cohort_version(void) { return COHORT_VERSION; }

int32_t cohort_methods(char **json, cohort_call *call) {
    ONLY_IN_PARENT(call);
    return goMethods(json, call);
}

int32_t cohort_engine_new(int32_t workers, cohort_engine **engine, cohort_call *call) {
    ONLY_IN_PARENT(call);
    return goEngineNew(workers, (uintptr_t *)engine, call);
}

void cohort_engine_free(cohort_engine *engine) {
    if (!forked) goEngineFree((uintptr_t)engine);
}

int32_t cohort_prepare(cohort_engine *engine, const cohort_data *holders, int32_t count, const double *weights,
                       const char *options, cohort_call *call, cohort_records **records) {
    ONLY_IN_PARENT(call);
    return goPrepare((uintptr_t)engine, (cohort_data *)holders, count, (double *)weights, (char *)options, call, (uintptr_t *)records);
}

int32_t cohort_records_shape(const cohort_records *records, int64_t *rows, int64_t *columns) {
    ONLY_IN_PARENT(NULL);
    return goRecordsShape((uintptr_t)records, rows, columns);
}

void cohort_records_free(cohort_records *records) {
    if (!forked) goFree((uintptr_t)records);
}

int32_t cohort_fit_records(cohort_engine *engine, cohort_records *records, const char *options,
                           cohort_call *call, cohort_model **model) {
    ONLY_IN_PARENT(call);
    return goFitRecords((uintptr_t)engine, (uintptr_t)records, (char *)options, call, (uintptr_t *)model);
}

int32_t cohort_fit(cohort_engine *engine, const cohort_data *holders, int32_t count, const double *weights,
                   const char *options, cohort_call *call, cohort_model **model) {
    ONLY_IN_PARENT(call);
    return goFit((uintptr_t)engine, (cohort_data *)holders, count, (double *)weights, (char *)options, call, (uintptr_t *)model);
}

int32_t cohort_model_shape(const cohort_model *model, int64_t *k, int64_t *columns, int64_t *rows) {
    ONLY_IN_PARENT(NULL);
    return goModelShape((uintptr_t)model, k, columns, rows);
}

int32_t cohort_model_centroids(const cohort_model *model, double *centroids, int64_t room) {
    ONLY_IN_PARENT(NULL);
    return goModelCentroids((uintptr_t)model, centroids, room);
}

int32_t cohort_model_labels(const cohort_model *model, int32_t *labels, int64_t room) {
    ONLY_IN_PARENT(NULL);
    return goModelLabels((uintptr_t)model, labels, room);
}

int32_t cohort_model_labels_view(const cohort_model *model, int32_t **labels) {
    ONLY_IN_PARENT(NULL);
    return goModelLabelsView((uintptr_t)model, labels);
}

int32_t cohort_model_json(const cohort_model *model, char **json, cohort_call *call) {
    ONLY_IN_PARENT(call);
    return goModelJSON((uintptr_t)model, json, call);
}

int32_t cohort_model_load(const char *json, cohort_call *call, cohort_model **model) {
    ONLY_IN_PARENT(call);
    return goModelLoad((char *)json, call, (uintptr_t *)model);
}

void cohort_model_free(cohort_model *model) {
    if (!forked) goFree((uintptr_t)model);
}

int32_t cohort_predict(cohort_engine *engine, const cohort_model *model, const cohort_data *data,
                       int32_t *labels, double *distances, cohort_call *call) {
    ONLY_IN_PARENT(call);
    return goPredict((uintptr_t)engine, (uintptr_t)model, (cohort_data *)data, labels, distances, call);
}
