// The live threads of this process, from /proc/self/task. No malloc.
#pragma once

#include <sys/types.h>

namespace cfg {

using ThreadVisitor = void (*)(pid_t tid, void* data);

// 0, or the error number that kept it from looking.
int visit_threads(ThreadVisitor visitor, void* data) noexcept;

// The kernel's name of a thread (at most 15 bytes and a terminator), or "" if it is gone.
void thread_name(pid_t tid, char (&name)[16]) noexcept;

} // namespace cfg
