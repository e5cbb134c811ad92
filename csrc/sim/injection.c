/* CUDA_INJECTION64_PATH: how a profiler, or cuda_fork_guard's hook, gets to know of a cuInit. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* Under the lock of cuInit. */
static bool accepted = false;

void sim_inject(void) {
    if (accepted)
        return;
    const char* path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        return;
    /* A library that can't be loaded is nobody's error: tools leave the variable behind, "none" is a common value. */
    void* library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return;
    int (*initialize)(void) = NULL;
    void* symbol = dlsym(library, "InitializeInjection");
    memcpy(&initialize, &symbol, sizeof initialize);
    /* Set before the call, which may call cuInit again. */
    accepted = true;
    accepted = initialize != NULL && initialize() != 0;
    if (!accepted)
        dlclose(library);
}

void sim_forget_injection(void) {
    accepted = false;
}
