#include "core/threads.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "core/proc_folder.hpp"
#include "core/safe_output.hpp"

namespace cfg {

int visit_threads(ThreadVisitor visitor, void* data) noexcept {
    return visit_numbers("/proc/self/task", visitor, data);
}

void thread_name(pid_t tid, char (&name)[16]) noexcept {
    char path[48];
    Text(path, sizeof path).put("/proc/self/task/").decimal(tid).put("/comm");
    name[0] = '\0';
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    const ssize_t length = read(file, name, sizeof name);
    close(file);
    // The kernel ends it with a line feed.
    name[length > 0 ? length - 1 : 0] = '\0';
}

} // namespace cfg
