#include "hook.h"

#include <stdatomic.h>

/* What the driver does with InitializeInjection's answer: 1 means "never again in this process" (550 and 555 then stay
 * silent in forked children too), 0 means that the next cuInit calls again. 0 it is: a cuInit that fails now and one
 * that works later are both counted, and a forked child's own cuInit is seen. */
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
