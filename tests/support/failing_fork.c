/* LD_PRELOADed: fork() fails with EAGAIN while the environment says FAIL_FORK, as under a process limit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

pid_t fork(void) {
    if (getenv("FAIL_FORK") != NULL) {
        errno = EAGAIN;
        return -1;
    }
    pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
    return real();
}
