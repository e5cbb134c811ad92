/* Whether the driver is up, and for whom. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "sim.h"

const int cuda_fork_guard_simulated = 1;

enum phase { PHASE_DOWN = 0, PHASE_TRIED, PHASE_UP };
static _Atomic int phase = PHASE_DOWN;
/* The process that first entered cuInit; 0 if none did. */
static _Atomic(pid_t) owner = 0;
static _Atomic int driver_version = 12080;
/* Recursive, as an injected library may call cuInit itself. */
static pthread_mutex_t initializing = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

bool sim_up(void) {
    return atomic_load(&phase) == PHASE_UP && atomic_load(&owner) == getpid();
}

CUresult sim_enter(enum sim_entry entry) {
    CUresult told = sim_fault(entry);
    if (told != CUDA_SUCCESS)
        return told;
    return sim_up() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult bring_up(void) {
    sim_inject();
    CUresult told = sim_fault(SIM_cuInit);
    if (told != CUDA_SUCCESS)
        return told;
    if (atomic_load(&phase) == PHASE_UP)
        return CUDA_SUCCESS;
    if (sim_find_devices() == 0)
        return CUDA_ERROR_NO_DEVICE;
    sim_destroy_contexts(); /* what calls left behind that an earlier shutdown overtook */
    atomic_store(&phase, PHASE_UP);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags) {
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* Before the lock: in a child the thread that held it may not exist. */
    pid_t self = getpid();
    pid_t first = 0;
    if (!atomic_compare_exchange_strong(&owner, &first, self) && first != self)
        return atomic_load(&phase) == PHASE_UP ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_OPERATING_SYSTEM;
    pthread_mutex_lock(&initializing);
    int down = PHASE_DOWN;
    atomic_compare_exchange_strong(&phase, &down, PHASE_TRIED);
    CUresult result = bring_up();
    pthread_mutex_unlock(&initializing);
    return result;
}

CUresult cuDriverGetVersion(int* version) {
    CUresult told = sim_fault(SIM_cuDriverGetVersion);
    if (told != CUDA_SUCCESS)
        return told;
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = atomic_load(&driver_version);
    return CUDA_SUCCESS;
}

void sim_set_version(int version) {
    atomic_store(&driver_version, version);
}

/* Back to a library that was just loaded. A forked child can't get there: what it inherited stays broken until exec. */
int cfg_sim_shutdown(void) {
    pid_t first = atomic_load(&owner);
    if (first != 0 && first != getpid())
        return -1;
    pthread_mutex_lock(&initializing);
    atomic_store(&phase, PHASE_DOWN);
    sim_destroy_contexts();
    sim_forget_injection();
    atomic_store(&owner, 0);
    pthread_mutex_unlock(&initializing);
    return 0;
}
