#include "core/exiting.hpp"

#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>

namespace cfg {

namespace {
constexpr const char* kExits[] = {"exit", "Py_FinalizeEx", "Py_Exit", "__cxa_finalize"};
constexpr int kDeepest = 192;
} // namespace

bool process_is_exiting() noexcept {
    void* addresses[kDeepest];
    const int count = backtrace(addresses, kDeepest);
    for (int i = 0; i < count; ++i) {
        Dl_info info{};
        if (dladdr(addresses[i], &info) == 0 || info.dli_sname == nullptr) {
            continue;
        }
        for (const char* name : kExits) {
            if (std::strcmp(info.dli_sname, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

} // namespace cfg
