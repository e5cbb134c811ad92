/* Threads that Python never saw, and a call of cuInit before Python starts or after it has ended. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef int (*initialize)(unsigned int);

/* Exported, so that it has a name in the origin; not a tail call, so that it has a frame. */
__attribute__((noinline)) int call_the_driver(initialize function) {
    volatile int code = function(0);
    return code;
}

static void* run(void* argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    *(int*)argument = call_the_driver(*(initialize*)((void**)argument)[1]);
    return NULL;
}

int on_a_foreign_thread(initialize function) {
    void* argument[2] = {NULL, &function};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0)
        return -1;
    pthread_join(thread, NULL);
    return *(int*)argument;
}

/* With the GIL: `set` is PyErr_SetString. */
int with_an_error_set(void (*set)(void*, const char*), void* type, initialize function) {
    set(type, "its own");
    return call_the_driver(function);
}

static initialize at_the_end;

static void last_call(void) {
    call_the_driver(at_the_end);
}

void at_exit(initialize function) {
    at_the_end = function;
    atexit(last_call);
}

/* LD_PRELOADed: cuInit of the library in this variable is called before the program's main. */
__attribute__((constructor)) static void early(void) {
    const char* path = getenv("CALL_CUINIT_OF");
    void* library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    initialize function = library != NULL ? (initialize)dlsym(library, "cuInit") : NULL;
    if (function != NULL)
        call_the_driver(function);
}
