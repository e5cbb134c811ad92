#include "hook.h"

#include <stdatomic.h>

/* What the driver does with InitializeInjection's answer: 1 means "never again in this process", 0 that it unloads this
 * library (which stays where the guard holds it) and calls again at the next cuInit. 0 it is: a cuInit that fails now
 * and one that works later are both counted. Nothing else that could be seen differs: codes, threads, descriptors. */
enum { CALL_ME_AGAIN = 0 };

/* Atomic because cuInit may run on any thread while the guard is being installed or uninstalled on another. */
static _Atomic(void (*)(void)) current_listener;

int InitializeInjection(void) {
    void (*listener)(void) = atomic_load_explicit(&current_listener, memory_order_acquire);
    if (listener) {
        listener();
    }
    return CALL_ME_AGAIN;
}

void cuda_fork_guard_hook_listen(void (*listener)(void)) {
    atomic_store_explicit(&current_listener, listener, memory_order_release);
}
