/* What the files of the simulated driver share. One process-wide driver; its life goes down -> tried -> up, and a
 * child forked from a process that called cuInit has none of its own until it execs. */
#ifndef CUDA_FORK_GUARD_SIM_H
#define CUDA_FORK_GUARD_SIM_H

#include <stdbool.h>

#include "cuda_api.h"

enum sim_entry {
#define X(name, since) SIM_##name,
#include "entries.inc"
#include "entries_refused.inc"
#undef X
    SIM_ENTRIES
};

enum { SIM_MAX_DEVICES = 16 };

/* What every entry does first: the fault it was told to have, else NOT_INITIALIZED unless this process's driver is up.
 */
CUresult sim_enter(enum sim_entry entry);
#define SIM_ENTER(name)                                                                                                \
    do {                                                                                                               \
        CUresult refused_ = sim_enter(SIM_##name);                                                                     \
        if (refused_ != CUDA_SUCCESS)                                                                                  \
            return refused_;                                                                                           \
    } while (0)

/* lifecycle.c */
bool sim_up(void);

/* injection.c: loads what CUDA_INJECTION64_PATH names, as cuInit does before it looks for devices. */
void sim_inject(void);
void sim_forget_injection(void);

/* faults.c: being slow and failing, as told for each entry. */
CUresult sim_fault(enum sim_entry entry);
bool sim_set_slow(enum sim_entry entry, int milliseconds);
bool sim_set_fail(enum sim_entry entry, int code, int times); /* times 0: always */
void sim_clear_faults(void);

/* symbols.c: SIM_ENTRIES if there is no such entry. */
enum sim_entry sim_entry_named(const char* name, size_t length);

/* devices.c */
void sim_set_installed(int count);
int sim_find_devices(void); /* applies CUDA_VISIBLE_DEVICES; how many this process sees */
bool sim_is_device(CUdevice device);

/* contexts.c: the lock covers contexts and memory. */
void sim_lock(void);
void sim_unlock(void);
CUresult sim_current_device(CUdevice* device); /* of the calling thread's context */
void sim_destroy_contexts(void);

/* memory.c, with the lock held */
void sim_free_device_memory(CUdevice device);
size_t sim_device_memory(void);

/* The version cuDriverGetVersion answers. */
void sim_set_version(int version);

/* Control, exported for cuda_fork_guard.testing; 0, or -1 for an argument that makes no sense. The names don't begin
 * with "cu", as everything that does belongs to the driver API and gets trapped. */
#define SIM_CONTROL __attribute__((visibility("default")))
SIM_CONTROL int cfg_sim_configure(const char* settings);
SIM_CONTROL int cfg_sim_devices(int count);
SIM_CONTROL int cfg_sim_version(int version);
SIM_CONTROL int cfg_sim_slow(const char* entry, int milliseconds);
SIM_CONTROL int cfg_sim_fail(const char* entry, int code, int times);
SIM_CONTROL int cfg_sim_shutdown(void);

/* By this the guard knows whom it is talking to. */
SIM_CONTROL extern const int cuda_fork_guard_simulated;

#endif
