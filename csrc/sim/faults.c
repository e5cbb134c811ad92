/* Entries that were told to be slow or to fail. Atomics only: told and asked on any thread, and in forked children. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "sim.h"

static _Atomic bool any_fault = false;
static _Atomic int slow_ms[SIM_ENTRIES];
static _Atomic int fail_code[SIM_ENTRIES];
static _Atomic int fail_left[SIM_ENTRIES]; /* negative: for ever */

bool sim_set_slow(enum sim_entry entry, int milliseconds) {
    if (entry >= SIM_ENTRIES || milliseconds < 0)
        return false;
    atomic_store(&slow_ms[entry], milliseconds);
    atomic_store(&any_fault, true);
    return true;
}

bool sim_set_fail(enum sim_entry entry, int code, int times) {
    if (entry >= SIM_ENTRIES || code < 0 || times < 0)
        return false;
    atomic_store(&fail_left[entry], times == 0 ? -1 : times);
    atomic_store(&fail_code[entry], code);
    atomic_store(&any_fault, true);
    return true;
}

void sim_clear_faults(void) {
    atomic_store(&any_fault, false);
    for (int entry = 0; entry < SIM_ENTRIES; entry++) {
        atomic_store(&slow_ms[entry], 0);
        atomic_store(&fail_code[entry], CUDA_SUCCESS);
    }
}

static void wait_for(int milliseconds) {
    struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

CUresult sim_fault(enum sim_entry entry) {
    if (!atomic_load(&any_fault))
        return CUDA_SUCCESS;
    int milliseconds = atomic_load(&slow_ms[entry]);
    if (milliseconds > 0)
        wait_for(milliseconds);
    int code = atomic_load(&fail_code[entry]);
    if (code == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    int left = atomic_load(&fail_left[entry]);
    while (left > 0 && !atomic_compare_exchange_weak(&fail_left[entry], &left, left - 1)) {
    }
    return left == 0 ? CUDA_SUCCESS : (CUresult)code;
}
