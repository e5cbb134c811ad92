/* Names and texts of result codes. */
#include "sim.h"

static const struct error {
    int code;
    const char* name;
    const char* text;
} errors[] = {
#define X(code, name, text) {code, #name, text},
#include "errors.inc"
#undef X
};

static const struct error* find(CUresult code) {
    for (size_t index = 0; index < sizeof errors / sizeof errors[0]; index++)
        if (errors[index].code == (int)code)
            return &errors[index];
    return NULL;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
    CUresult told = sim_fault(SIM_cuGetErrorName);
    if (told != CUDA_SUCCESS)
        return told;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct error* error = find(code);
    *name = error != NULL ? error->name : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
    CUresult told = sim_fault(SIM_cuGetErrorString);
    if (told != CUDA_SUCCESS)
        return told;
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct error* error = find(code);
    *text = error != NULL ? error->text : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
