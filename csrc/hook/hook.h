/* cuda_fork_guard_hook.so: what CUDA_INJECTION64_PATH names. The driver loads it inside cuInit, in any program that has
 * the variable: a shell's child, a C++ program, another Python. Without a registered listener it does nothing. */
#ifndef CUDA_FORK_GUARD_HOOK_H
#define CUDA_FORK_GUARD_HOOK_H

/* Called by cuInit on the calling thread, before it looks for a device. */
__attribute__((visibility("default"))) int InitializeInjection(void);

/* The guard's native module registers here; null takes the listener away. */
__attribute__((visibility("default"))) void cuda_fork_guard_hook_listen(void (*listener)(void));

#endif
