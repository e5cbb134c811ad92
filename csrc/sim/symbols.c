/* The table of entries: found by name, as cuGetProcAddress does, and refused where nothing is implemented. */
#include <string.h>

#include "sim.h"

/* They take whatever their callers pass: under the C calling conventions of this platform arguments that nobody reads
 * do no harm. */
static CUresult refuse(enum sim_entry entry) {
    CUresult refused = sim_enter(entry);
    return refused != CUDA_SUCCESS ? refused : CUDA_ERROR_NOT_SUPPORTED;
}

#define X(name, since)                                                                                                 \
    SIM_API CUresult name(void);                                                                                       \
    CUresult name(void) {                                                                                              \
        return refuse(SIM_##name);                                                                                     \
    }
#include "entries_refused.inc"
#undef X

typedef void (*function)(void);
static const struct entry {
    const char* name;
    function address;
    int since;
} entries[SIM_ENTRIES] = {
#define X(name, since) {#name, (function)name, since},
#include "entries.inc"
#include "entries_refused.inc"
#undef X
};

enum sim_entry sim_entry_named(const char* name, size_t length) {
    int found = 0;
    while (found < SIM_ENTRIES &&
           (strncmp(entries[found].name, name, length) != 0 || entries[found].name[length] != '\0'))
        found++;
    return (enum sim_entry)found;
}

/* An exported name is the name that callers of cuGetProcAddress use, and what it adds: "_v2", "_ptds", "_v3_ptsz". */
struct form {
    size_t base;     /* length of the name without the addition */
    bool per_thread; /* the form for the per-thread default stream */
};

static struct form form_of(const char* exported) {
    size_t length = strlen(exported);
    struct form form = {length, false};
    if (length > 5 && (strcmp(exported + length - 5, "_ptds") == 0 || strcmp(exported + length - 5, "_ptsz") == 0)) {
        form.per_thread = true;
        form.base -= 5;
    }
    const char* end = exported + form.base;
    if (form.base > 3 && end[-3] == '_' && end[-2] == 'v' && end[-1] >= '2' && end[-1] <= '9')
        form.base -= 3;
    return form;
}

/* The newest form that a program of this CUDA version knows; `exists` if there is one for any version. A function that
 * has forms for the per-thread stream is found in one of these only, if those are asked for. */
static function find(const char* base, int version, bool per_thread, bool* exists) {
    size_t length = strlen(base);
    const struct entry* best[2] = {NULL, NULL}; /* by form.per_thread */
    bool any[2] = {false, false};
    for (int index = 0; index < SIM_ENTRIES; index++) {
        const struct entry* entry = &entries[index];
        struct form form = form_of(entry->name);
        if (form.base != length || strncmp(entry->name, base, length) != 0)
            continue;
        any[form.per_thread] = true;
        if (entry->since <= version && (best[form.per_thread] == NULL || entry->since > best[form.per_thread]->since))
            best[form.per_thread] = entry;
    }
    bool wanted = per_thread && any[true];
    *exists = any[wanted];
    return best[wanted] != NULL ? best[wanted]->address : NULL;
}

enum { FLAG_LEGACY_STREAM = 1, FLAG_PER_THREAD_STREAM = 2 };

static CUresult look_up(const char* symbol, void** result, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status) {
    if (symbol == NULL || result == NULL || (flags & ~(cuuint64_t)(FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool exists = false;
    function found = find(symbol, version, (flags & FLAG_PER_THREAD_STREAM) != 0, &exists);
    memcpy(result, &found, sizeof found);
    *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
              : exists      ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

/* The first form knows no status: a symbol that isn't there is an error, and the result stays as it was. */
CUresult cuGetProcAddress(const char* symbol, void** result, int version, cuuint64_t flags) {
    CUresult told = sim_fault(SIM_cuGetProcAddress);
    if (told != CUDA_SUCCESS)
        return told;
    void* found = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult code = look_up(symbol, result == NULL ? NULL : &found, version, flags, &status);
    if (code != CUDA_SUCCESS)
        return code;
    if (found == NULL)
        return CUDA_ERROR_NOT_FOUND;
    *result = found;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** result, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    CUresult told = sim_fault(SIM_cuGetProcAddress_v2);
    if (told != CUDA_SUCCESS)
        return told;
    CUdriverProcAddressQueryResult ignored;
    return look_up(symbol, result, version, flags, status != NULL ? status : &ignored);
}

/* Tables of internal functions: the CUDA runtime asks for them, and goes on to its cuInit without. */
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    CUresult told = sim_fault(SIM_cuGetExportTable);
    if (told != CUDA_SUCCESS)
        return told;
    if (table != NULL && id != NULL)
        *table = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
