/* Counts the forks that the driver makes while it is inside cuInit. */
#include <pthread.h>

static int forks = 0;
static void count(void) {
    forks++;
}

int forks_since_hook(void) {
    return forks;
}
int InitializeInjection(void) {
    return pthread_atfork(count, NULL, NULL) == 0;
}
